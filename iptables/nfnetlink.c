#include "iptables/nfnetlink.h"

#include "admin/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_POLICY 1 // NF_ACCEPT

struct batch {
    _Alignas(8) char bytes[1024];
    size_t used;
    uint32_t sequence;
};

static struct nlmsghdr *batch_add(
        struct batch *batch, uint16_t type, uint16_t flags, uint8_t nfproto, uint16_t id) {
    struct nlmsghdr *header = (struct nlmsghdr *)(batch->bytes + batch->used);
    struct nfgenmsg *generic = NLMSG_DATA(header);
    *header = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof *generic),
            .nlmsg_type = type,
            .nlmsg_flags = NLM_F_REQUEST | flags,
            .nlmsg_seq = ++batch->sequence};
    *generic = (struct nfgenmsg){.nfgen_family = nfproto, .version = NFNETLINK_V0, .res_id = htons(id)};
    batch->used += NLMSG_ALIGN(header->nlmsg_len);
    return header;
}

static void batch_text(struct batch *batch, struct nlmsghdr *header, uint16_t type, const char *text) {
    size_t length = strlen(text) + 1;
    CHECK(batch->used + NLA_HDRLEN + NLA_ALIGN(length) <= sizeof batch->bytes);
    struct nlattr *attribute = (struct nlattr *)(batch->bytes + batch->used);
    *attribute = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + length), .nla_type = type};
    memcpy((char *)attribute + NLA_HDRLEN, text, length);
    batch->used += NLA_ALIGN(attribute->nla_len);
    header->nlmsg_len = (uint32_t)((batch->bytes + batch->used) - (char *)header);
}

static uint8_t nfproto_of(enum family family) {
    return family == FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

static uint16_t message(int type) {
    return (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
}

static int first_error(const char *bytes, size_t length) {
    const struct nlmsghdr *header = (const struct nlmsghdr *)bytes;
    for (unsigned left = (unsigned)length; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
        const struct nlmsgerr *error = NLMSG_DATA(header);
        if (header->nlmsg_type == NLMSG_ERROR && error->error != 0)
            return error->error;
    }
    return 0;
}

// The kernel answers within send(2); what is not there afterwards will not come. `reply` gets the first
// datagram when it is no error.
static int exchange(const struct batch *batch, char *reply, size_t size, size_t *got) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (fd < 0)
        return errno == EPROTONOSUPPORT ? -ENOENT : -errno;
    int result = 0;
    *got = 0;
    if (send(fd, batch->bytes, batch->used, 0) < 0)
        result = -errno;
    char scratch[4096] __attribute__((aligned(8)));
    ssize_t length;
    while ((length = recv(fd, scratch, sizeof scratch, MSG_DONTWAIT)) > 0) {
        if (result == 0)
            result = first_error(scratch, (size_t)length);
        if (*got == 0 && (size_t)length <= size) {
            memcpy(reply, scratch, (size_t)length);
            *got = (size_t)length;
        }
    }
    close(fd);
    return result;
}

static int ask(uint8_t nfproto, const char *table, const char *chain, char *reply, size_t size, size_t *got) {
    struct batch batch = {0};
    struct nlmsghdr *header =
            batch_add(&batch, message(chain ? NFT_MSG_GETCHAIN : NFT_MSG_GETTABLE), 0, nfproto, 0);
    batch_text(&batch, header, chain ? NFTA_CHAIN_TABLE : NFTA_TABLE_NAME, table);
    if (chain)
        batch_text(&batch, header, NFTA_CHAIN_NAME, chain);
    int result = exchange(&batch, reply, size, got);
    // A kernel whose nfnetlink has no nf_tables says EINVAL or EOPNOTSUPP.
    return result == -EINVAL || result == -EOPNOTSUPP ? -ENOENT : result;
}

static int exists(uint8_t nfproto, const char *table, const char *chain) {
    char reply[4096] __attribute__((aligned(8)));
    size_t got;
    int result = ask(nfproto, table, chain, reply, sizeof reply, &got);
    return result == 0 ? 1 : result == -ENOENT ? 0 : result;
}

int nfnetlink_has_table(enum family family, const char *table) {
    return exists(nfproto_of(family), table, NULL);
}

int nfnetlink_has_inet_table(const char *table) {
    return exists(NFPROTO_INET, table, NULL);
}

int nfnetlink_has_chain(enum family family, const char *table, const char *chain) {
    return exists(nfproto_of(family), table, chain);
}

bool nfnetlink_chain_accepts(enum family family, const char *table, const char *chain) {
    char reply[4096] __attribute__((aligned(8)));
    size_t got;
    if (ask(nfproto_of(family), table, chain, reply, sizeof reply, &got) != 0 ||
            got < NLMSG_LENGTH(sizeof(struct nfgenmsg)))
        return false;
    const struct nlmsghdr *header = (const struct nlmsghdr *)reply;
    size_t at = NLMSG_LENGTH(sizeof(struct nfgenmsg)),
           end = header->nlmsg_len <= got ? header->nlmsg_len : got;
    while (at + NLA_HDRLEN <= end) {
        const struct nlattr *attribute = (const struct nlattr *)(reply + at);
        if (attribute->nla_len < NLA_HDRLEN || at + attribute->nla_len > end)
            return false;
        uint32_t policy;
        if ((attribute->nla_type & NLA_TYPE_MASK) == NFTA_CHAIN_POLICY &&
                attribute->nla_len == NLA_HDRLEN + sizeof policy) {
            memcpy(&policy, reply + at + NLA_HDRLEN, sizeof policy);
            return ntohl(policy) == ACCEPT_POLICY;
        }
        at += NLA_ALIGN(attribute->nla_len);
    }
    return false;
}

static void delete_chain(struct batch *batch, enum family family, const char *table, const char *chain) {
    struct nlmsghdr *header =
            batch_add(batch, message(NFT_MSG_DELCHAIN), NLM_F_ACK | NLM_F_NONREC, nfproto_of(family), 0);
    batch_text(batch, header, NFTA_CHAIN_TABLE, table);
    batch_text(batch, header, NFTA_CHAIN_NAME, chain);
}

int nfnetlink_delete(
        enum family family, const char *table, const char *first, const char *second, bool with_table) {
    struct batch batch = {0};
    batch_add(&batch, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    delete_chain(&batch, family, table, first);
    if (second)
        delete_chain(&batch, family, table, second);
    if (with_table) {
        struct nlmsghdr *header =
                batch_add(&batch, message(NFT_MSG_DELTABLE), NLM_F_ACK | NLM_F_NONREC, nfproto_of(family), 0);
        batch_text(&batch, header, NFTA_TABLE_NAME, table);
    }
    batch_add(&batch, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    char reply[64] __attribute__((aligned(8)));
    size_t got;
    return exchange(&batch, reply, sizeof reply, &got);
}
