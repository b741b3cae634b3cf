package cron

import (
	"regexp"
	"strings"
	"sync"
	"time"
)

// lazy compiles a pattern when it is first used: those of failures and of the scan take over a megabyte together, and most
// processes need none of them.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Cause is why a run failed, as far as its error tells. The names are stable: translations hang on them.
type Cause string

// The causes. A script, a monitor and an agent that did nothing are never blamed on the model's provider, whatever is in what
// they put out.
const (
	CauseScriptTime  Cause = "script_time" // a script ran longer than it may
	CauseScript      Cause = "script"      // a script failed
	CauseMonitor     Cause = "monitor"     // what the job watches can't be seen
	CauseIdle        Cause = "idle"        // the agent did nothing for too long
	CauseScan        Cause = "scan"        // the prompt holds what no prompt may
	CauseRate        Cause = "rate"        // the provider has had too many requests
	CauseAuth        Cause = "auth"        // the provider refuses the key
	CauseUnreachable Cause = "unreachable" // the network or a name: the provider was not reached at all
	CauseOther       Cause = "other"
)

// causeRules are asked in this order; the first that holds is the cause.
var causeRules = []struct {
	cause Cause
	text  func() *regexp.Regexp
	line  string
}{
	{CauseScriptTime, lazy(`(?i)\bscript\b[^\n]*\b(?:timed? ?out|ran (?:for )?longer|took longer|deadline exceeded|time limit)`), "The script ran longer than it may, and was ended."},
	{CauseScript, lazy(`(?i)^\s*(?:the )?(?:monitor )?script\b`), "The script failed"},
	{CauseMonitor, lazy(`(?i)^\s*(?:the )?monitor\b`), "What the job watches can't be seen"},
	{CauseIdle, lazy(`(?i)\b(?:inactiv\w*|no activity|did nothing for|was idle for)\b`), "The agent did nothing for too long, and was ended."},
	{CauseScan, lazy(`^(?:.*: )?the text (?:tells the agent|sends secrets|reads a file of|deletes the system|opens a way|stops or restarts|holds characters)`), "The prompt holds something that no job may"},
	{CauseRate, lazy(`(?i)(?:^|[\s("'\[=])429(?:$|[\s)"'\],;:]|\.(?:\s|$))|\brate[_ -]?limit|\btoo many requests\b`), "The model's provider has had too many requests (429)."},
	{CauseAuth, lazy(`(?i)(?:^|[\s("'\[=])40[13](?:$|[\s)"'\],;:]|\.(?:\s|$))|\bunauthori[sz]ed\b|\b(?:invalid|incorrect|missing) api[_ -]?key\b|: auth\b`), "The model's provider refuses the key."},
	{CauseUnreachable, lazy(`(?i)\bno such host\b|\bconnection refused\b|\bnetwork is (?:unreachable|down)\b|\bno route to host\b|\bhost is (?:unreachable|down)\b|\bname resolution\b|` +
		`\bserver misbehaving\b|\bdial (?:tcp|udp)\b|\btls handshake timeout\b`), "The model's provider could not be reached."},
}

// CauseOf tells why a run failed from the text of its error.
func CauseOf(text string) Cause {
	for _, rule := range causeRules {
		if rule.text().MatchString(text) {
			return rule.cause
		}
	}
	return CauseOther
}

// maxFailureLine is how many characters a failure's line has.
const maxFailureLine = 200

// FailureLine says in one short line why a run failed. It is never empty.
func FailureLine(text string) string {
	detail := ""
	for line := range strings.SplitSeq(text, "\n") {
		if detail = Plain(line, maxFailureLine); detail != "" {
			break
		}
	}
	cause := CauseOf(text)
	for _, rule := range causeRules {
		if rule.cause != cause {
			continue
		}
		if strings.HasSuffix(rule.line, ".") {
			return rule.line
		}
		return Plain(rule.line+": "+detail, maxFailureLine)
	}
	if detail == "" {
		return "It failed, and nothing says why."
	}
	return detail
}

// The parts of an error that differ from one time to the next, and what replaces them in its signature.
var signatureFolds = []struct {
	part func() *regexp.Regexp
	as   string
}{
	{lazy(`\b\d{4}-\d{2}-\d{2}(?:[tT_ ]\d{2}[:-]\d{2}(?:[:-]\d{2}(?:[.,]\d+)?)?)?(?:\s?(?:[zZ]\b|[+-]\d{2}:?\d{2}\b))?`), "<time>"},
	{lazy(`\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b`), "<time>"},
	{lazy(`[a-z][a-z0-9+.-]*://[^\s"'<>)]+`), "<url>"},
	{lazy(`(?:^|[\s"'(=:\[])(?:~|\.{1,2})?(?:/[^\s"'():,;/]+)+/?`), " <path>"},
	{lazy(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<id>"},
	{lazy(`\b\d+(?:[.,:]\d+)+|\b\d+\b`), "<n>"},
	{lazy(`\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{4,}\b`), "<id>"},
	{lazy(`\b\w*[a-z_]\w*\d\w*\d\w*\d\w*\d\w*\b`), "<id>"},
	{lazy(`\d+(?:\.\d+)?`), "<n>"},
}

// httpStatus are the numbers that say what the error is, and are kept.
var httpStatus = lazy(`(?i)\b(http|status|status code|exit code|exit status|code)[ :=]*(\d{1,3})\b`)

// statusWords replace the digits of a status while numbers are folded.
var statusWords = strings.NewReplacer("0", "\x10", "1", "\x11", "2", "\x12", "3", "\x13", "4", "\x14", "5", "\x15", "6", "\x16", "7", "\x17", "8", "\x18", "9", "\x19")
var statusDigits = strings.NewReplacer("\x10", "0", "\x11", "1", "\x12", "2", "\x13", "3", "\x14", "4", "\x15", "5", "\x16", "6", "\x17", "7", "\x18", "8", "\x19", "9")

// Signature is what an error has in common with itself at another time: numbers, ids, paths, addresses and times are
// folded, but for HTTP statuses and exit codes, which say what it is. Two failures of a job with one signature are one
// incident. It is at most 200 characters, in lower case.
func Signature(text string) string {
	text = strings.ToLower(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	text = httpStatus().ReplaceAllStringFunc(text, statusWords.Replace)
	for _, fold := range signatureFolds {
		text = fold.part().ReplaceAllString(text, fold.as)
	}
	return Plain(statusDigits.Replace(text), maxFailureLine)
}

// Nudge reports whether a failure's notice suggests looking at the job: a recurring one that has failed so often in a row.
// threshold 0 or less never asks.
func Nudge(streak, threshold int, recurring bool) bool {
	return recurring && threshold > 0 && streak >= threshold
}

// retryDelays are how long after a failure a job that could not reach anything is tried again.
var retryDelays = []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

// RetryAt returns when a recurring job that reached nothing is tried again, after so many tries before (0: the slot's own
// run has failed). ok is false after the last one, and when its next slot comes no later: then that is the next try.
// A zero next is no slot.
func RetryAt(tries int, failed, next time.Time) (at time.Time, ok bool) {
	if tries < 0 || tries >= len(retryDelays) {
		return time.Time{}, false
	}
	at = failed.Add(retryDelays[tries])
	return at, next.IsZero() || at.Before(next)
}
