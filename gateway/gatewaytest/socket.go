package gatewaytest

import (
	"herald/gateway/admin"
	"herald/gateway/config"
)

// Ask runs a verb of the control socket and decodes its answer into reply.
func (h *House) Ask(verb string, args, reply any) error {
	h.T.Helper()
	return admin.Call(h.T.Context(), config.PathsFor(h.Home).Socket, verb, args, reply)
}
