// One field line, and what a head's fields mean to a connection. Lookups by id are in http/head.h.
#pragma once

#include "http/head.h"

// Connection options a head may carry; more are refused, so that naming fields stays cheap.
#define FIELD_NOMINATIONS_MAX 32

// The flags of http/field.tbl; 0 for FIELD_OTHER.
unsigned field_flags(enum field_id id);

// Reads "name: value" (without CRLF) into `field`. NULL, or a static sentence that says what is wrong.
const char *field_parse(struct view line, struct http_field *field);

// Marks the fields that Connection nominates [RFC 9110 §7.6.1]. A field of http/field.tbl that is not
// FIELD_HOP is end to end whatever Connection says: to nominate it would let a sender take Host,
// Content-Length, Cache-Control or Authorization off a message, so that this hop and the next see two
// different ones. False when there are more options than FIELD_NOMINATIONS_MAX.
bool field_nominate(struct http_head *head);
