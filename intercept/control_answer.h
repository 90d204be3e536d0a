// What the daemon answers to the requests of its control socket: stats [json], store status [json], purge
// (url URL, prefix URL, host NAME, mask MASK, all), explain (explain.h), reload, drain, stop.
#pragma once

#include "intercept/control.h"

control_handler control_answer; // `context` is the struct supervisor
