#include "admin/validate.h"

typedef bool checker(const struct config *, struct config_errors *);

static checker *const checkers[] = {
#define CHECKER(function) function,
#include "admin/validate.tbl"
        NULL,
};

bool validate_config(const struct config *config, struct config_errors *errors) {
    bool good = true;
    for (checker *const *check = checkers; *check; check++)
        good = (*check)(config, errors) && good;
    return good;
}
