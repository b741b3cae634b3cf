// Package delivery takes what is in the outbox to the platforms. It promises:
//
//   - One serial lane per address: messages of an address leave in the order they were committed (P3). The
//     answer to a command has a lane of its own beside it, so that it never waits behind a hanging send (P14).
//   - Every attempt is written down before it is made. A send whose outcome is unknown is repeated only
//     where a repetition can't make a second copy (an edit, an idempotent platform, a reconciled nonce);
//     otherwise it is surfaced once and left to the person (P4). The line that surfaces it, like every notice,
//     is itself tried a few times: a second copy of it is harmless, its loss would be silence (P7).
//   - Nothing is sent inside a retry-after window, also after a restart (P8). What is only for show
//     (previews, progress, typing) is dropped there; an answer waits.
//   - A message of ours that grows is one message: previews are edited, and the final text completes the
//     preview by an edit, never by a second message.
//
// It must not know turns, models or commands: it sees rows, and live messages that others fill.
package delivery
