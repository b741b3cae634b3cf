// Package jobs runs scheduled jobs: one run from its claim to its delivery. It promises:
//
//   - A slot of a job begins in the transaction that claims it, and ends in the one that queues its output: each has
//     exactly one end (P9), and its output is queued at most once, whatever the process dies of.
//   - The work of the agent is a turn in a session of its own, at an address of the platform Platform, that no adapter
//     serves: it survives a restart as every turn does, and no chat's conversation reaches it (P6).
//   - What runs outside of a turn, scripts and monitors, is never begun twice: a restart in the middle ends the run as
//     failed, and says so where the output would have gone.
//   - Output goes where its job says, through the outbox, and where it may, into the conversation there: not before the
//     platform has confirmed it.
//
// Ends writes down how runs end, and is made first; Jobs begins them, and is made last. Package brief writes the text that
// goes out. The rules of schedules, targets, mirroring and silence are in package cron.
package jobs
