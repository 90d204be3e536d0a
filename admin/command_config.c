#include "admin/command.h"

#include <string.h>

int config_command(const struct command_call *call) {
    bool json = call->argc > 0 && strcmp(call->argv[0], "--json") == 0;
    if (call->argc > json)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[json]);
    struct config *config = command_load_config(call);
    if (!config)
        return COMMAND_PROBLEM;
    if (json)
        config_print_json(config, stdout);
    else
        config_print(config, stdout);
    config_free(config);
    return COMMAND_DONE;
}
