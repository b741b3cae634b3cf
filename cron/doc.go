// Package cron says when scheduled agents run, and keeps what is known of each job. A Schedule is a rule for instants.
//
// It promises that a slot, one instant of one schedule, keeps the wall clock of its zone across clock changes, exists
// once when an hour comes twice, and is not lost when its hour does not come at all.
//
// It must not know how an agent runs or how a message is sent.
package cron
