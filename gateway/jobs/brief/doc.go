// Package brief writes what a run of a scheduled job has to say and brings it to its places: the frame, the files, the
// conversations that a reply can come to. It promises:
//
//   - A brief goes where its job says, through the outbox, and it is queued in the transaction that ends its run.
//   - Where it may, it becomes part of the conversation at its place, in the transaction of the platform's receipt and
//     not before: nobody is answered about something that did not arrive.
//   - Nothing of it carries a secret (Options.Redact), and the name of a job is one line.
//
// It sends nothing itself, and knows neither the scheduler nor the router. The rules of targets, mirroring and silence
// are in package cron.
package brief
