package main

import (
	"slices"
	"time"
)

// quantile returns the smallest value of sorted that at least the share q of the values do not exceed
// (nearest rank). q is in [0, 1]; no values give 0.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// spread is what a set of times comes to, in milliseconds.
type spread struct {
	N      int     `json:"n"`
	Min    float64 `json:"min_ms"`
	Median float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// spreadOf sorts times in place.
func spreadOf(times []time.Duration) spread {
	slices.Sort(times)
	return spread{N: len(times), Min: millis(quantile(times, 0)), Median: millis(quantile(times, 0.5)), P99: millis(quantile(times, 0.99)),
		Max: millis(quantile(times, 1))}
}

// millis is d in milliseconds.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ratio is a/b, and 0 where there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
