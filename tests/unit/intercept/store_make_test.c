#include "intercept/store_volumes.h"
#include "tests/unit/unit.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-store-make-XXXXXX", made[64];

static const char *below(const char *name) {
    snprintf(made, sizeof made, "%s%s", folder, name);
    return made;
}

static struct stat status_of(const char *name) {
    struct stat status = {0};
    CU_ASSERT_EQUAL(stat(below(name), &status), 0);
    return status;
}

static const struct passwd *begin(void) {
    const struct passwd *user = geteuid() == 0 ? getpwnam("nobody") : NULL;
    memcpy(folder + sizeof folder - 1 - 6, "XXXXXX", 6);
    if (user)
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    return user;
}

// Its parents let everybody through, under the daemon's umask, too; it is the user's alone.
static void deep(void) {
    const struct passwd *user = begin();
    if (!user)
        return;
    mode_t before = umask(027);
    CU_ASSERT_TRUE(store_directory_make(below("/a/b/c"), "nobody"));
    umask(before);
    CU_ASSERT_EQUAL(status_of("/a").st_mode & 07777, 0755);
    CU_ASSERT_EQUAL(status_of("/a/b").st_mode & 07777, 0755);
    CU_ASSERT_EQUAL(status_of("/a/b").st_uid, 0);
    CU_ASSERT_EQUAL(status_of("/a/b/c").st_mode & 07777, 0750);
    CU_ASSERT_EQUAL(status_of("/a/b/c").st_uid, user->pw_uid);
    CU_ASSERT_EQUAL(rmdir(below("/a/b/c")) + rmdir(below("/a/b")) + rmdir(below("/a")) + rmdir(folder), 0);
}

static void behind_a_link(void) {
    const struct passwd *user = begin();
    if (!user)
        return;
    CU_ASSERT_EQUAL(mkdir(below("/disk"), 0755) + mkdir(below("/other"), 0755), 0);
    CU_ASSERT_EQUAL(symlink("disk", below("/link")) + symlink("other", below("/theirs")), 0);
    CU_ASSERT_EQUAL(lchown(below("/theirs"), user->pw_uid, user->pw_gid), 0);
    CU_ASSERT_TRUE(store_directory_make(below("/link"), "nobody"));
    CU_ASSERT_EQUAL(status_of("/disk").st_uid, user->pw_uid);
    CU_ASSERT_TRUE(store_directory_make(below("/theirs"), "nobody"));
    CU_ASSERT_EQUAL(status_of("/other").st_uid, 0); // a link of the user's own gives nothing away
    CU_ASSERT_EQUAL(unlink(below("/link")) + unlink(below("/theirs")), 0);
    CU_ASSERT_EQUAL(rmdir(below("/disk")) + rmdir(below("/other")) + rmdir(folder), 0);
}

static void for_nobody_known(void) {
    CU_ASSERT_FALSE(store_directory_make("/nowhere/at/all", "no such user"));
}

SUITE(intercept_store_make, CASE(deep), CASE(behind_a_link), CASE(for_nobody_known))
