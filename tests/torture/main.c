// load WORLD origin | load WORLD clients PROXY ORIGIN THREADS
#include "tests/torture/load.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words) {
    int fd = count > 2 ? open(words[1], O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return 2;
    struct world *world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (world == MAP_FAILED)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(words[2], "origin") == 0)
        origin_run(world, 0);
    else if (count == 6)
        clients_run(world, (uint16_t)atoi(words[3]), (uint16_t)atoi(words[4]), (unsigned)atoi(words[5]));
    else
        return 2;
    return 0;
}
