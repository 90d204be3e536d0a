// What the daemon answers to the requests of its control socket: stats [json], purge url URL, purge host
// NAME, purge all, explain (explain.h), reload, drain, stop.
#pragma once

#include "intercept/control.h"

control_handler control_answer; // `context` is the struct supervisor
