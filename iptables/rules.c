#include "admin/command.h"
#include "iptables/guard.h"
#include "iptables/hint.h"
#include "iptables/lock.h"
#include "iptables/nft.h"
#include "iptables/plan.h"
#include "iptables/prompt.h"
#include "iptables/ruleset.h"
#include "iptables/status.h"
#include "iptables/trial.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONFIRM_SECONDS_MAXIMUM 86400

struct options {
    bool has_backend;
    enum backend backend;
    unsigned confirm_seconds; // 0: none
    bool on_stop;             // remove: as on_failure says
};

static int fail(const struct problem *problem) {
    fprintf(stderr, "weir rules: %s\n", problem->text);
    return COMMAND_PROBLEM;
}

static int parse_backend(const struct command_call *call, const char *text, struct options *options) {
    options->has_backend = true;
    if (strcmp(text, "nft") == 0)
        options->backend = BACKEND_NFT;
    else if (strcmp(text, "iptables") == 0)
        options->backend = BACKEND_IPTABLES;
    else
        return command_usage_error(call, "--backend is iptables or nft, not \"%s\"", text);
    return COMMAND_DONE;
}

static int parse_confirm(const struct command_call *call, const char *text, struct options *options) {
    uint64_t seconds;
    if (!view_number(view_of(text), &seconds) || seconds == 0 || seconds > CONFIRM_SECONDS_MAXIMUM)
        return command_usage_error(
                call, "--confirm takes seconds, 1 to %d, not \"%s\"", CONFIRM_SECONDS_MAXIMUM, text);
    options->confirm_seconds = (unsigned)seconds;
    return COMMAND_DONE;
}

// The options that take a value.
static int parse_valued(
        const struct command_call *call, const char *name, const char *value, struct options *options) {
    bool backend = strcmp(name, "--backend") == 0, confirm = strcmp(name, "--confirm") == 0;
    if (!backend && !confirm)
        return command_usage_error(call, "\"%s\" is no option of it", name);
    if (!value)
        return command_usage_error(call, "%s needs a value behind it", name);
    if (confirm && strcmp(call->argv[0], "apply") != 0)
        return command_usage_error(call, "--confirm belongs to apply");
    return backend ? parse_backend(call, value, options) : parse_confirm(call, value, options);
}

static int parse_options(const struct command_call *call, struct options *options) {
    int status = COMMAND_DONE;
    for (int i = 1; i < call->argc && status == COMMAND_DONE; i++) {
        const char *name = call->argv[i];
        if (strcmp(name, "--on-stop") == 0 && strcmp(call->argv[0], "remove") == 0) {
            options->on_stop = true;
            continue;
        }
        status = parse_valued(call, name, i + 1 < call->argc ? call->argv[i + 1] : NULL, options);
        i++;
    }
    return status;
}

static bool has_net_admin(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    return syscall(SYS_capget, &header, data) == 0 &&
           data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective & CAP_TO_MASK(CAP_NET_ADMIN);
}

static int demand_net_admin(struct problem *problem) {
    if (has_net_admin())
        return 0;
    return problem_say(problem, EPERM,
            "the capability CAP_NET_ADMIN is missing: run it as root (in a container: --cap-add NET_ADMIN)");
}

static int load_plan(const struct command_call *call, struct plan *plan, struct problem *problem) {
    struct config *config = command_load_config(call);
    if (!config)
        return problem_say(problem, EINVAL, "%s has errors, nothing is done", call->config_file);
    int result = plan_make(config, plan, problem);
    config_free(config);
    return result;
}

// The one asked for; else the one whose rules are in force; else nft where it works.
static enum backend choose(const struct options *options, const struct ruleset *live) {
    if (options->has_backend)
        return options->backend;
    bool nft = live && ruleset_has(live, BACKEND_NFT), iptables = live && ruleset_has(live, BACKEND_IPTABLES);
    if (nft != iptables)
        return nft ? BACKEND_NFT : BACKEND_IPTABLES;
    return nft_works(live != NULL) ? BACKEND_NFT : BACKEND_IPTABLES;
}

static void print_applied(const struct plan *plan, enum backend backend, const char *how) {
    printf("%s: %s %s", how, backend_name(backend), plan->mode == PLAN_TPROXY ? "tproxy" : "redirect");
    for (enum family family = 0; family < FAMILY_COUNT; family++)
        if (plan->target[family].on)
            printf(", %s to port %u", family_name(family), plan->target[family].port);
    printf(", from");
    for (unsigned i = 0; i < plan->interface_count; i++)
        printf(" %s", plan->interfaces[i]);
    putchar('\n');
}

// Changes the rules, with a guard when there is to be one. guard->pid is 0 without.
static int change(const struct ruleset *live, const struct plan *plan, enum backend backend, unsigned seconds,
        int lock, struct guard *guard, struct problem *problem) {
    struct ruleset target;
    int result = 0;
    guard->pid = 0;
    if (seconds)
        result = guard_start(live, seconds, lock, guard, problem);
    if (result < 0)
        return result;
    ruleset_make(&target, plan, backend);
    result = ruleset_install(&target, problem);
    ruleset_fini(&target);
    if (guard->pid && result < 0)
        guard_cancel(guard);
    else if (guard->pid)
        guard_arm(guard);
    return result;
}

// Under the lock. guard->pid says whether there is a confirmation to wait for.
static int apply_locked(const struct plan *plan, const struct options *options, int lock, struct guard *guard,
        struct problem *problem) {
    struct ruleset live, wanted;
    bool exact;
    guard->pid = 0;
    if (options->confirm_seconds && guard_find())
        return problem_say(problem, EBUSY,
                "an earlier apply is not confirmed yet: `weir rules confirm` it, or wait until it is rolled "
                "back");
    int result = ruleset_capture(&live, problem);
    if (result < 0)
        return result;
    enum backend backend = choose(options, &live);
    result = trial_run(plan, backend, &wanted, &exact, problem);
    if (result < 0)
        goto done;
    bool same = ruleset_equal(&live, &wanted);
    ruleset_fini(&wanted);
    if (!same)
        result = change(&live, plan, backend, options->confirm_seconds, lock, guard, problem);
    if (result < 0)
        goto done;
    if (!options->confirm_seconds && guard_confirm())
        puts("the earlier apply is confirmed");
    print_applied(plan, backend, same ? "already in force" : "applied");
    hint_listener(stdout, plan);
done:
    ruleset_fini(&live);
    return result;
}

static int apply(const struct command_call *call, const struct options *options) {
    struct problem problem;
    struct plan plan;
    struct guard guard;
    if (demand_net_admin(&problem) < 0 || load_plan(call, &plan, &problem) < 0)
        return fail(&problem);
    int lock = lock_take(&problem);
    int result = lock < 0 ? lock : apply_locked(&plan, options, lock, &guard, &problem);
    if (lock >= 0)
        lock_drop(lock);
    if (result < 0)
        return fail(&problem);
    return guard.pid ? prompt_confirm(&guard, options->confirm_seconds) : COMMAND_DONE;
}

// `on_failure closed` asks for the rules to outlive the daemon. A file that cannot be read asks for nothing.
static bool must_stay(const struct command_call *call) {
    struct config_errors errors = {0};
    struct config *config = config_read(call->config_file, &errors);
    bool closed = config && config->on_failure == ON_FAILURE_CLOSED;
    config_errors_fini(&errors);
    config_free(config);
    return closed;
}

// A change of the rules under the lock; whether there were any before goes to *had.
typedef int locked_change(
        const struct command_call *call, const struct options *options, bool *had, struct problem *problem);

static int run_locked(
        const struct command_call *call, const struct options *options, locked_change *locked, bool *had) {
    struct problem problem;
    *had = false;
    if (demand_net_admin(&problem) < 0)
        return fail(&problem);
    int lock = lock_take(&problem);
    int result = lock < 0 ? lock : locked(call, options, had, &problem);
    if (lock >= 0)
        lock_drop(lock);
    return result < 0 ? fail(&problem) : COMMAND_DONE;
}

static int remove_locked(
        const struct command_call *call, const struct options *options, bool *had, struct problem *problem) {
    struct ruleset live, nothing;
    (void)call;
    (void)options;
    int result = ruleset_capture(&live, problem);
    *had = result == 0 && (ruleset_has(&live, BACKEND_NFT) || ruleset_has(&live, BACKEND_IPTABLES));
    if (result == 0)
        ruleset_fini(&live);
    ruleset_make_empty(&nothing);
    result = ruleset_install(&nothing, problem);
    ruleset_fini(&nothing);
    if (result == 0)
        guard_confirm(); // else it would bring back what was before
    return result;
}

static int remove_rules(const struct command_call *call, const struct options *options) {
    bool had;
    if (options->on_stop && must_stay(call))
        return COMMAND_DONE;
    int status = run_locked(call, options, remove_locked, &had);
    if (status != COMMAND_DONE)
        return status;
    if (had)
        puts("removed: new connections pass weir by");
    else if (!options->on_stop)
        puts("there were no rules of weir's");
    return COMMAND_DONE;
}

// The rules in force but for the selection of new connections: those pass weir by, those that run go on.
// (Taken away altogether, the rules would take the running ones along: tproxy needs its divert rule, and the
// kernel translates no address any more once the last NAT chain is gone.)
static int release_locked(
        const struct command_call *call, const struct options *options, bool *had, struct problem *problem) {
    struct ruleset rules;
    (void)call;
    (void)options;
    int result = ruleset_capture(&rules, problem);
    if (result < 0)
        return result;
    *had = ruleset_has(&rules, BACKEND_NFT) || ruleset_has(&rules, BACKEND_IPTABLES);
    ruleset_release(&rules);
    if (*had)
        result = ruleset_install(&rules, problem);
    ruleset_fini(&rules);
    return result;
}

static int release(const struct command_call *call, const struct options *options) {
    bool had;
    if (must_stay(call)) {
        puts("on_failure closed: the rules stay and refuse what weir does not take; weir rules remove ends "
             "that");
        return COMMAND_DONE;
    }
    int status = run_locked(call, options, release_locked, &had);
    if (status == COMMAND_DONE && had)
        puts("released: new connections pass weir by, running ones go on");
    return status;
}

static int confirm(void) {
    struct problem problem;
    int lock = lock_take(&problem);
    if (lock < 0)
        return fail(&problem);
    bool waited = guard_confirm();
    lock_drop(lock);
    puts(waited ? "confirmed: the rules stay" : "nothing waits to be confirmed");
    return waited ? COMMAND_DONE : COMMAND_PROBLEM;
}

static int status(const struct command_call *call, const struct options *options) {
    struct problem problem;
    struct plan plan;
    struct ruleset live, wanted;
    bool exact, current = false;
    if (demand_net_admin(&problem) < 0 || load_plan(call, &plan, &problem) < 0)
        return fail(&problem);
    int lock = lock_take(&problem);
    int result = lock < 0 ? lock : ruleset_capture(&live, &problem);
    if (result == 0) {
        result = trial_run(&plan, choose(options, &live), &wanted, &exact, &problem);
        if (result == 0) {
            current = status_print(stdout, &plan, &live, &wanted, exact);
            ruleset_fini(&wanted);
        }
        ruleset_fini(&live);
    }
    if (lock >= 0)
        lock_drop(lock);
    if (result < 0)
        return fail(&problem);
    return current ? COMMAND_DONE : COMMAND_PROBLEM;
}

static int print(const struct command_call *call, const struct options *options) {
    struct problem problem;
    struct plan plan;
    if (load_plan(call, &plan, &problem) < 0)
        return fail(&problem);
    ruleset_print(stdout, &plan, choose(options, NULL));
    return COMMAND_DONE;
}

int rules_command(const struct command_call *call) {
    struct options options = {0};
    const char *verb = call->argc > 0 ? call->argv[0] : "";
    int status_of_options = parse_options(call, &options);
    if (status_of_options != COMMAND_DONE)
        return status_of_options;
    setenv("LC_ALL", "C", 1); // what the tools say is read
    if (strcmp(verb, "apply") == 0)
        return apply(call, &options);
    if (strcmp(verb, "remove") == 0)
        return remove_rules(call, &options);
    if (strcmp(verb, "release") == 0)
        return release(call, &options);
    if (strcmp(verb, "confirm") == 0)
        return confirm();
    if (strcmp(verb, "status") == 0)
        return status(call, &options);
    if (strcmp(verb, "print") == 0)
        return print(call, &options);
    return command_usage_error(
            call, *verb ? "\"%s\" is nothing rules can do" : "what is to be done is missing%s", verb);
}
