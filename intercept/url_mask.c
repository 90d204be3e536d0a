#include "intercept/url_mask.h"

#include "http/target.h"

#define HTTP_PORT 80

bool url_mask_request(struct acl_request *request, struct view authority, struct view path) {
    struct authority parsed;
    if (!authority_parse(authority, &parsed))
        return false;
    *request = (struct acl_request){.scheme = VIEW("http"),
            .host = parsed.host,
            .port = parsed.port ? parsed.port : HTTP_PORT,
            .path = path};
    return true;
}

bool url_mask_matches(const struct acl_mask *mask, struct view authority, struct view path) {
    struct acl_request request;
    return url_mask_request(&request, authority, path) && acl_mask_matches(mask, &request);
}
