#include "iptables/nft.h"

#include "admin/check.h"
#include "iptables/nfnetlink.h"
#include "iptables/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_absent(const char *complaint) {
    return strstr(complaint, "No such file or directory") || strstr(complaint, "Protocol not supported");
}

static int list(const char *const argv[], char **listing, struct problem *problem) {
    struct tool_output output;
    *listing = NULL;
    int result = tool_run(argv, NULL, &output, problem);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    if (output.status == 0) {
        *listing = output.out;
        output.out = NULL;
    } else if (!is_absent(output.err)) {
        char line[512];
        tool_first_line(output.err, line, sizeof line);
        result = problem_say(problem, EIO, "nft failed (exit status %d): %s", output.status, line);
    }
    tool_output_fini(&output);
    return result;
}

int nft_capture(char **listing, struct problem *problem) {
    const char *const argv[] = {"nft", "-s", "list", "table", "inet", "weir", NULL};
    int result = list(argv, listing, problem);
    if (result == 0 && !*listing && nfnetlink_has_inet_table("weir") == 1)
        result = problem_say(problem, ENOENT,
                "table inet weir is there, and nft is not in PATH: install it (package nftables)");
    return result;
}

int nft_install(const char *live, const char *target, struct problem *problem) {
    if (!live && !target)
        return 0;
    char *input = NULL;
    size_t size;
    FILE *out = open_memstream(&input, &size);
    CHECK(out);
    fputs("add table inet weir\ndelete table inet weir\n", out); // `delete` alone fails when there is none
    if (target)
        fputs(target, out);
    fclose(out);
    const char *const argv[] = {"nft", "-f", "-", NULL};
    int result = tool_demand(argv, input, NULL, problem);
    free(input);
    return result;
}

int nft_count(enum family family, unsigned long long *packets, struct problem *problem) {
    char *listing, *state = NULL;
    const char *const argv[] = {"nft", "list", "chain", "inet", "weir", "intercept", NULL};
    const char *wanted = family == FAMILY_IPV4 ? "nfproto ipv4 " : "nfproto ipv6 ";
    int result = list(argv, &listing, problem);
    *packets = 0;
    for (char *line = listing ? strtok_r(listing, "\n", &state) : NULL; line;
            line = strtok_r(NULL, "\n", &state)) {
        const char *counter = strstr(line, wanted) ? strstr(line, "counter packets ") : NULL;
        if (counter)
            *packets += strtoull(counter + strlen("counter packets "), NULL, 10);
    }
    free(listing);
    return result;
}

bool nft_works(bool kernel) {
    struct problem ignored;
    const char *const version[] = {"nft", "--version", NULL};
    const char *const tables[] = {"nft", "list", "tables", NULL};
    return tool_demand(kernel ? tables : version, NULL, NULL, &ignored) == 0;
}
