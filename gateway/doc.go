// Package gateway is the daemon: a Gateway owns one profile, wires its parts together, starts them in order
// and stops them in order. The work itself is in the packages below it; only cmd imports this one.
//
// It promises that everything that an earlier process left is taken up before the first new event comes in,
// that a platform that can't start is named in the log, in health and in /status and never takes
// the daemon down, and that a stop loses nothing (P10).
package gateway
