// Package faults is the network side of the fake servers: a server that can be taken off the network, cut and
// brought back (Server), and a handler in front of another one that makes single calls go wrong as networks,
// proxies and services do (Script). It knows no platform.
package faults
