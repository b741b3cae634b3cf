// Package fetch downloads what strangers name: the files of messages, and pages that a tool reads. It promises that
// no request leaves for an address inside the operator's network, whatever the URL, the name server or a redirect
// says (SSRF), and that no answer takes more memory, disk or time than the caller allows:
//
//   - Only http and https, only ports 80 and 443, no URL with a user name in it.
//   - A name is resolved once and the connection goes to the address that was checked, so that a second answer of
//     the name server (DNS rebinding) has no effect. Every redirect hop goes through the same door. Loopback,
//     private, link-local, shared (CGNAT), multicast, reserved and documentation ranges, addresses of cloud
//     metadata services, and every IPv6 form that carries an IPv4 address of these ranges are refused.
//   - Options.Allow names the servers of the operator's own configuration (a private API server on loopback). They are
//     exempt from the address and port rules, and nothing else is.
//   - At most 5 redirects. Headers of the caller, above all Authorization, stay with the origin that they were meant
//     for: another scheme, host or port gets none of them, and neither does any hop after it.
//   - The size is counted while the body is read; what a server claims is never believed.
//   - Errors name the host and never a path, a query or a credential: links to files are often secrets themselves.
//
// A proxy of the environment is honoured where gateway.trust_env says so, and does not weaken this: the name is
// resolved and checked here and the proxy is asked for the address, with the certificate still checked against the
// name. Where that can't be done the request is refused: plain http through an HTTP proxy, and names that only the proxy
// can resolve. Servers in Options.Allow are asked of the proxy by name.
//
// It knows nothing of platforms, messages or configuration.
package fetch
