// Package signaltest is a fake signal-cli daemon in HTTP mode, with the phones, groups and people behind it: JSON-RPC on
// POST /api/v1/rpc, server-sent events on GET /api/v1/events, GET /api/v1/check.
//
// It answers as the real daemon does (0.13.19), its errors included, checks what it is given (style ranges, mentions,
// files, quotes) and can be told to misbehave as networks and daemons do. It knows the protocol and nothing of Herald's
// adapter.
package signaltest
