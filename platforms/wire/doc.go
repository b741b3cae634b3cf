// Package wire holds what adapters that speak HTTP share: the client that keeps the facts of each request (Client, Call,
// Trace), errors without secrets (Redact), rates and windows (Gate), the state of the inbound path (Health), waits between
// attempts (Backoff), memories of a bounded size (Recent), what comes of a message that needs several requests (Parts), and
// time that tests control (Clock). It knows no platform.
package wire
