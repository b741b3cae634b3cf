// Package provider opens the model that the settings and the environment ask for, wrapped with retries and
// fallbacks, and says in one sentence which it is and why.
//
// It promises that an explicit setting wins, that nothing is probed when there is a key, and that a start
// is never held up: the only I/O is one request to the loopback, bounded by ProbeTimeout. It must not know
// the configuration file.
package provider
