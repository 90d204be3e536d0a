// The one place that binds the commands of every folder: whoever links it links them all.
#include "admin/command.h"

static const struct command commands[] = {
#define COMMAND(name, function, arguments, meaning) {#name, function, arguments, meaning},
#include "admin/command.tbl"
};

int main(int argc, char **argv) {
    return command_main(commands, sizeof commands / sizeof commands[0], argc, argv);
}
