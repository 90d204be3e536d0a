// What Connection says of a message [RFC 9110 §7.6.1]. Whether it is kept open: http_keeps_alive in
// http/head.h.
#pragma once

#include "http/head.h"

// Connection options a head may carry; more are refused, so that naming fields stays cheap.
#define CONNECTION_OPTIONS_MAX 32

// Marks the fields that Connection nominates [RFC 9110 §7.6.1]. A field of http/field.tbl that is not
// FIELD_HOP is end to end whatever Connection says: to nominate it would let a sender take Host,
// Content-Length, Cache-Control or Authorization off a message, so that this hop and the next see two
// different ones. False when there are more options than CONNECTION_OPTIONS_MAX.
bool connection_nominate(struct http_head *head);
