// Package view shows scheduled jobs: what each is doing and why, its runs and where their output went, what has failed and
// what somebody should put right. It reads the store and changes nothing but which incidents are acknowledged, so that it
// works with and without a daemon. It must not know who asks.
package view
