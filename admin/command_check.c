#include "admin/cache_dir.h"
#include "admin/command.h"
#include "admin/validate.h"

int check_command(const struct command_call *call) {
    struct config_errors errors = {0};
    if (call->argc > 0)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[0]);
    struct config *config = config_read(call->config_file, &errors);
    if (config) {
        validate_config(config, &errors);
        cache_dirs_note_rooms(config, &config->notes);
        config_errors_print(&config->notes, stdout);
    }
    config_errors_print(&errors, stderr);
    if (errors.count == 0)
        printf("%s: good\n", call->config_file);
    else
        fprintf(stderr, "%s: %u error%s\n", call->config_file, errors.count, errors.count == 1 ? "" : "s");
    int status = errors.count == 0 ? COMMAND_DONE : COMMAND_PROBLEM;
    config_errors_fini(&errors);
    config_free(config);
    return status;
}
