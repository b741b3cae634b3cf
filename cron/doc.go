// Package cron is when scheduled agents run. A Schedule says at which instants; what is kept about a job
// has tables of its own.
//
// It promises that a slot, one instant of one schedule, keeps the wall clock of its zone across clock changes, exists
// once when an hour comes twice, and is not lost when its hour does not come at all.
//
// It must not know how an agent runs or how a message is sent.
package cron
