#include "iptables/template.h"

#include "admin/check.h"

#include <ctype.h>
#include <string.h>

enum when {
    WHEN_ALWAYS,
    WHEN_TPROXY,
    WHEN_REDIRECT,
    WHEN_INTERFACE,               // once for each LAN interface
    WHEN_REDIRECT_PORT,           // REDIRECT to a listener on every address
    WHEN_REDIRECT_ADDRESS,        // ... on one address
    WHEN_FAMILY_TPROXY,           // once for each family that is on
    WHEN_FAMILY_REDIRECT_PORT,    // the same, listener on every address
    WHEN_FAMILY_REDIRECT_ADDRESS, // the same, listener on one address
    WHEN_PASS_WHEN_GONE,          // tproxy, on_failure open
    WHEN_DROP_WHEN_GONE,          // tproxy, on_failure closed
};

struct line {
    enum when when;
    const char *text;
};

static const struct line iptables_lines[] = {
#define LINE(when, text) {WHEN_##when, text},
#include "iptables/iptables.tmpl"
};

static const struct line nft_lines[] = {
#define LINE(when, text) {WHEN_##when, text},
#include "iptables/nft.tmpl"
};

struct context {
    const struct plan *plan;
    enum family family;
    const char *interface;
};

static void write_marked(FILE *out, uint32_t mark, uint32_t mask) {
    fprintf(out, "0x%x/0x%x", mark, mask);
}

static void write_address(FILE *out, const struct context *context) {
    const char *address = context->plan->target[context->family].address;
    fprintf(out, *address && context->family == FAMILY_IPV6 ? "[%s]" : "%s", address);
}

static void write_any_address(FILE *out, const struct context *context) {
    const char *address = context->plan->target[context->family].address;
    const char *any = context->family == FAMILY_IPV4 ? "0.0.0.0" : "::";
    fputs(*address ? address : any, out);
}

// nft writes "any ending" as '*'.
static void write_wildcard(FILE *out, const char *interface) {
    size_t length = strlen(interface);
    bool wild = interface[length - 1] == '+';
    fprintf(out, "%.*s%s", (int)(wild ? length - 1 : length), interface, wild ? "*" : "");
}

static void write_value(FILE *out, const char *name, size_t length, const struct context *context) {
    const struct plan *plan = context->plan;
#define IS(value) (length == sizeof(value) - 1 && memcmp(name, value, length) == 0)
    if (IS("family"))
        fputs(family_name(context->family), out);
    else if (IS("intercept"))
        write_marked(out, plan->intercept, plan->mask);
    else if (IS("upstream"))
        write_marked(out, plan->upstream, plan->mask);
    else if (IS("mask"))
        fprintf(out, "0x%08x", plan->mask);
    else if (IS("others"))
        fprintf(out, "0x%08x", ~plan->mask);
    else if (IS("mark"))
        fprintf(out, "0x%08x", plan->intercept);
    else if (IS("own"))
        fprintf(out, "0x%08x", plan->upstream);
    else if (IS("http"))
        fprintf(out, "%d", PLAN_HTTP_PORT);
    else if (IS("port"))
        fprintf(out, "%u", plan->target[context->family].port);
    else if (IS("interface"))
        fputs(context->interface, out);
    else if (IS("wildcard"))
        write_wildcard(out, context->interface);
    else if (IS("address"))
        write_address(out, context);
    else if (IS("any_address"))
        write_any_address(out, context);
    else if (IS("nfproto"))
        fputs(context->family == FAMILY_IPV4 ? "ipv4" : "ipv6", out);
    else if (IS("ip"))
        fputs(context->family == FAMILY_IPV4 ? "ip" : "ip6", out);
    else
        UNREACHABLE("a template names a value that does not exist");
#undef IS
}

static void write_line(FILE *out, const char *text, const struct context *context) {
    while (*text) {
        size_t plain = strcspn(text, "$");
        fwrite(text, 1, plain, out);
        text += plain;
        if (*text == '$') {
            size_t length = 0;
            while (islower((unsigned char)text[1 + length]) || text[1 + length] == '_')
                length++;
            write_value(out, text + 1, length, context);
            text += 1 + length;
        }
    }
    fputc('\n', out);
}

static bool stands(enum when when, const struct context *context) {
    const struct plan *plan = context->plan;
    const struct plan_target *target = &plan->target[context->family];
    switch (when) {
    case WHEN_ALWAYS:
    case WHEN_INTERFACE:
        return true;
    case WHEN_TPROXY:
        return plan->mode == PLAN_TPROXY;
    case WHEN_REDIRECT:
        return plan->mode == PLAN_REDIRECT;
    case WHEN_PASS_WHEN_GONE:
        return plan->mode == PLAN_TPROXY && plan->pass_when_gone;
    case WHEN_DROP_WHEN_GONE:
        return plan->mode == PLAN_TPROXY && !plan->pass_when_gone;
    case WHEN_FAMILY_TPROXY:
        return plan->mode == PLAN_TPROXY && target->on;
    case WHEN_REDIRECT_PORT:
    case WHEN_FAMILY_REDIRECT_PORT:
        return plan->mode == PLAN_REDIRECT && target->on && !*target->address;
    case WHEN_REDIRECT_ADDRESS:
    case WHEN_FAMILY_REDIRECT_ADDRESS:
        return plan->mode == PLAN_REDIRECT && target->on && *target->address;
    }
    UNREACHABLE("a line that stands in no plan");
}

static bool is_per_family(enum when when) {
    return when == WHEN_FAMILY_TPROXY || when == WHEN_FAMILY_REDIRECT_PORT ||
           when == WHEN_FAMILY_REDIRECT_ADDRESS;
}

static void write_lines(FILE *out, const struct line *lines, size_t count, struct context context) {
    for (size_t i = 0; i < count; i++) {
        unsigned times = 1;
        if (lines[i].when == WHEN_INTERFACE)
            times = context.plan->interface_count;
        else if (is_per_family(lines[i].when))
            times = FAMILY_COUNT;
        for (unsigned turn = 0; turn < times; turn++) {
            struct context here = context;
            if (is_per_family(lines[i].when))
                here.family = turn == 0 ? FAMILY_IPV4 : FAMILY_IPV6;
            here.interface = context.plan->interfaces[lines[i].when == WHEN_INTERFACE ? turn : 0];
            if (stands(lines[i].when, &here))
                write_line(out, lines[i].text, &here);
        }
    }
}

void template_write_iptables(FILE *out, const struct plan *plan, enum family family) {
    if (plan->target[family].on)
        write_lines(out, iptables_lines, sizeof iptables_lines / sizeof *iptables_lines,
                (struct context){.plan = plan, .family = family});
}

void template_write_nft(FILE *out, const struct plan *plan) {
    write_lines(out, nft_lines, sizeof nft_lines / sizeof *nft_lines, (struct context){.plan = plan});
}
