#include "iptables/scratch.h"

#include "admin/check.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void raise_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

int scratch_enter(struct scratch *scratch) {
    scratch->outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (scratch->outside < 0)
        return -errno;
    if (unshare(CLONE_NEWNET) < 0) {
        int error = errno;
        close(scratch->outside);
        return -error;
    }
    raise_loopback();
    return 0;
}

void scratch_leave(struct scratch *scratch) {
    CHECK(setns(scratch->outside, CLONE_NEWNET) == 0);
    close(scratch->outside);
}
