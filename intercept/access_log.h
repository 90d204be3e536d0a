// The access log: exactly one line a request, tunnelled, denied and failed ones included. Workers format and
// hand over; a writer thread writes many lines with one write(2), so that a slow disk stops nobody. The queue
// between is bounded (4 MiB for each log); lines that do not fit and lines that could not be written are
// counted, and the count is said in the daemon's log at most once a minute.
//
// `access_log [MASK] PATH [FORMAT]`: PATH `-` or `stdout` is standard output, FORMAT is combined when it is
// left out. At most 16 directives. The formats: intercept/access_line.h.
#pragma once

#include "acl/acl.h"
#include "admin/config.h"

// What became of a request. The words stand in the log and in docs/weir.conf.5.
enum result {
#define RESULT(id, word, meaning) RESULT_##id,
#include "intercept/result.tbl"
    RESULT_COUNT
};
const char *result_word(enum result result);

struct access_entry {
    int64_t began_at_ms; // wall clock
    int64_t duration_ms;
    struct endpoint client;
    struct endpoint destination;      // original, or the resolved one; port 0: there was none
    bool contacted;                   // the origin was asked for this request
    struct view method;               // empty for a tunnel
    struct view scheme, host, target; // as in the request; host empty: the destination stands for it
    int minor_version;
    int status;          // sent to the client; 0: none
    uint64_t bytes_out;  // to the client, head included
    uint64_t body_bytes; // of them, content
    uint64_t bytes_in;   // from the client for this request
    enum result result;
    const char *reason; // a static word: "fresh", "connect-refused", ...
    const char *asked;  // what the store's lookup said, a static word; NULL: there was none
    bool is_confirming; // the origin was asked whether what is stored still holds
    struct view rule;   // acl_match's; empty: none
    struct view referer, user_agent, content_type;
};

struct access_log; // the writer, its queues and its files

// Opens the files of the access_log directives (O_APPEND, 0640, created; folders are not). NULL with errors
// added.
struct access_log *access_log_new(const struct config *config, struct config_errors *errors);
void access_log_free(struct access_log *log); // writes what is queued, then ends the thread; NULL is allowed
// After rotation, any thread: the writer opens each path again; one that cannot be opened stays as it was.
void access_log_reopen(struct access_log *log);
// Lines that were lost since access_log_new, all logs together.
uint64_t access_log_lost(const struct access_log *log);

// The directives alone, without opening anything: for `weir check`.
bool access_log_validate(const struct config *config, struct config_errors *errors);

// Any worker. Formats for each log whose mask matches. Never waits for a disk.
void access_log_write(
        struct access_log *log, const struct access_entry *entry, const struct acl_request *request);
