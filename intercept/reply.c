#include "intercept/reply.h"

#include "admin/check.h"
#include "admin/clock.h"
#include "http/compose.h"
#include "http/date.h"
#include "intercept/worker.h"

#include <string.h>

#define PAGE_BYTES 8192
#define DETAIL_BYTES 512 // of what a peer sent, before escaping

static void compose_escaped(struct composer *page, struct view text) {
    text = view_take(text, DETAIL_BYTES);
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte == '<')
            compose_text(page, "&lt;");
        else if (byte == '>')
            compose_text(page, "&gt;");
        else if (byte == '&')
            compose_text(page, "&amp;");
        else if (byte == '"')
            compose_text(page, "&quot;");
        else if (byte == '\'')
            compose_text(page, "&#39;");
        else if (byte >= 0x20 && byte < 0x7f)
            compose_view(page, view_take(view_skip(text, i), 1));
        else
            compose_text(page, "?");
    }
}

static void compose_page(struct composer *page, int status, const char *text, struct view detail) {
    compose_format(page,
            "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%d "
            "%s</title>\n<h1>%s</h1>\n<p>",
            status, http_reason(status), http_reason(status));
    compose_escaped(page, view_of(text));
    if (detail.length > 0) {
        compose_text(page, "</p>\n<p><code>");
        compose_escaped(page, detail);
        compose_text(page, "</code>");
    }
    compose_text(page, "</p>\n<hr><p>weir</p></html>\n");
    CHECK(!page->overflow); // two texts of DETAIL_BYTES, each byte six times as long
}

static void note(struct session *session, int status, enum result result, const char *reason) {
    struct request *request = session->request;
    CHECK(request && !request->answered);
    request->answered = true;
    request->body_over = true;
    request->status = status;
    request->result = result;
    request->reason = reason;
    session->closing = true;
    session_goto(session, STEP_finish);
}

// The head, and the page unless HEAD. Without Cache-Status: that is for what is made of a stored or an
// origin's response [RFC 9211 §2].
static void send_answer(struct session *session, int status, const char *fields, struct view page) {
    char head[1024], date[DATE_BYTES];
    struct composer out;
    compose_init(&out, head, sizeof head);
    compose_status_line(&out, status, VIEW(""));
    compose_format(&out, "Date: %s\r\n", date_print(loop_wall_ms(session->worker->loop) / 1000, date));
    compose_format(&out, "Via: 1.1 %s\r\nCache-Control: no-store\r\n", session->settings->via_name);
    compose_text(&out, fields);
    if (page.length > 0)
        compose_text(&out, "Content-Type: text/html; charset=utf-8\r\n");
    compose_format(&out, "Content-Length: %zu\r\nConnection: close\r\n\r\n", page.length);
    CHECK(!out.overflow);
    bool whole = buffer_append(&session->out, (struct view){head, out.length}, SESSION_OUT_BYTES);
    if (whole && session->request->head.method_id != METHOD_HEAD) {
        session->request->content_sent = page.length;
        whole = buffer_append(&session->out, page, SESSION_OUT_BYTES);
    }
    if (!whole) // no memory: the client sees the connection end
        session->reset = true;
}

enum run reply_page(struct session *session, int status, enum result result, const char *reason,
        const char *text, struct view detail) {
    char bytes[PAGE_BYTES];
    struct composer page;
    compose_init(&page, bytes, sizeof bytes);
    compose_page(&page, status, text, detail);
    note(session, status, result, reason);
    send_answer(session, status, "", (struct view){bytes, page.length});
    return RUN_NEXT;
}

enum run reply_head(
        struct session *session, int status, enum result result, const char *reason, const char *fields) {
    note(session, status, result, reason);
    send_answer(session, status, fields, VIEW(""));
    return RUN_NEXT;
}
