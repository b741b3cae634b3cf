// Package wire holds what adapters that speak HTTP share: whether a request may have arrived (Trace), errors without
// secrets (Clean), and time that tests control (Clock). It knows no platform.
package wire
