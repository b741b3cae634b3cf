package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// defaultWait is how long to wait when Signal limits the rate and does not say for how long.
const defaultWait = 30 * time.Second

// sendAnswer is what send, sendReaction and their like answer, and what the data of their errors holds.
type sendAnswer struct {
	Timestamp int64        `json:"timestamp"`
	Results   []sendResult `json:"results"`
}

type sendResult struct {
	Type       string `json:"type"`
	Success    *bool  `json:"success"`
	RetryAfter int64  `json:"retryAfterSeconds"`
	Token      string `json:"token"`
}

func (r sendResult) ok() bool {
	return r.Type == "SUCCESS" || r.Type == "" && (r.Success == nil || *r.Success)
}

// refusals maps what the daemon writes to what it means. The first match wins; matching ignores case.
var refusals = []struct {
	text string
	kind platforms.FailureKind
}{
	{"rate limit", platforms.RateLimited},
	{"[429]", platforms.RateLimited},
	{"captcha", platforms.RateLimited},
	{"proof required", platforms.RateLimited},
	{"account does not exist", platforms.AuthFailed},
	{"valid account parameter", platforms.AuthFailed},
	{"[403] authorization", platforms.AuthFailed},
	{"authorization failed", platforms.AuthFailed},
	{"not a group member", platforms.Forbidden},
	{"sending to this group is not allowed", platforms.Forbidden},
	{"group not found", platforms.NotFound},
	{"invalid group id", platforms.NotFound},
	{"not registered", platforms.NotFound},
	{"unregistered", platforms.NotFound},
	{"invalid phone number", platforms.NotFound},
	{"too long", platforms.TooLong},
	{"too big", platforms.TooLong},
	{"too large", platforms.TooLong},
}

// offline are causes that say that the daemon had no connection to Signal, so that nothing was sent.
var offline = []string{"unknownhost", "unknown host", "connectexception", "connection refused", "no route to host", "network is unreachable"}

// judge notes what a call has shown of the account: a window to wait, or that Signal does not take it any more. It
// returns err.
func (a *Adapter) judge(err *platforms.SendError) *platforms.SendError {
	switch {
	case err == nil:
		a.health.revoke("")
	case err.Kind == platforms.AuthFailed:
		if a.health.revoke(fmt.Sprintf(sayRevoked, err.Err)) {
			a.s.Log.Error().Msg(Mask(fmt.Sprintf(sayRevoked, err.Err)))
			a.restart()
		}
	}
	return a.limited(err)
}

// limited notes the window that Signal asked to wait, if err says so, and returns err.
func (a *Adapter) limited(err *platforms.SendError) *platforms.SendError {
	if err != nil && err.Kind == platforms.RateLimited {
		a.gate.Close(err.RetryAfter, wire.Account)
	}
	return err
}

// outcome says what is known of a failed call.
func outcome(err error) *platforms.SendError {
	var c *callError
	if !errors.As(err, &c) {
		return platforms.AsSendError(err)
	}
	e := &platforms.SendError{Kind: platforms.Transient, Err: clean(c)}
	switch {
	case c.answered:
		return refused(c, e)
	case c.status == 0:
		if c.sent {
			e.Certainty = platforms.Unknown
		}
	case c.status == http.StatusTooManyRequests:
		e.Kind, e.RetryAfter, e.AccountWide = platforms.RateLimited, wait(c.after), true
	case c.status == http.StatusOK, c.status >= 500:
		e.Certainty = platforms.Unknown
	case c.status == http.StatusRequestEntityTooLarge:
		e.Kind = platforms.TooLong
	case c.status == http.StatusUnauthorized, c.status == http.StatusForbidden:
		e.Kind = platforms.AuthFailed
	}
	return e
}

// refused reads an error that the daemon has put into words.
func refused(c *callError, e *platforms.SendError) *platforms.SendError {
	var data struct {
		Response sendAnswer `json:"response"`
	}
	_ = json.Unmarshal(c.data, &data)
	if len(data.Response.Results) > 0 {
		if by := ofResults(data.Response.Results); by != nil {
			return by
		}
	}
	text := strings.ToLower(c.message)
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			e.Kind = r.kind
			break
		}
	}
	switch {
	case c.code == codeRateLimit, e.Kind == platforms.RateLimited:
		e.Kind, e.RetryAfter, e.AccountWide = platforms.RateLimited, wait(0), true
	case e.Kind != platforms.Transient:
	case c.code == codeUntrusted:
		return untrusted()
	case c.code == codeUser, c.code == codeParams, c.code == codeUnknownMethod:
		e.Kind = platforms.BadRequest
	case c.code == codeIO, strings.Contains(text, "ioexception"):
		if !slices.ContainsFunc(offline, func(s string) bool { return strings.Contains(text, s) }) {
			e.Certainty = platforms.Unknown
		}
	case strings.Contains(text, "attachment"):
		e.Kind = platforms.BadRequest
	default:
		e.Certainty = platforms.Unknown
	}
	return e
}

// ofResults says what is known of a send that reached nobody. nil when it did reach somebody, or nobody was there.
func ofResults(results []sendResult) *platforms.SendError {
	if len(results) == 0 {
		return nil
	}
	var longest int64
	kinds := map[string]bool{}
	for _, r := range results {
		if r.ok() {
			return nil
		}
		kinds[r.Type] = true
		longest = max(longest, r.RetryAfter)
	}
	switch {
	case kinds["RATE_LIMIT_FAILURE"] || kinds["PROOF_REQUIRED_FAILURE"] || longest > 0:
		cause := "Signal limits the rate of this account"
		if slices.ContainsFunc(results, func(r sendResult) bool { return r.Token != "" }) {
			cause += " and asks for a proof that a person sends: see submitRateLimitChallenge in signal-cli's manual, or wait"
		}
		return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: wait(time.Duration(longest) * time.Second), AccountWide: true,
			Err: errors.New(cause)}
	case kinds["NETWORK_FAILURE"]:
		return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: errors.New("signal-cli lost the connection to Signal")}
	case kinds["IDENTITY_FAILURE"]:
		return untrusted()
	case kinds["UNREGISTERED_FAILURE"]:
		return platforms.Failure(platforms.NotFound, "this person is not on Signal")
	}
	return platforms.Failure(platforms.BadRequest, "nobody could be reached: %s", results[0].Type)
}

func untrusted() *platforms.SendError {
	return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New(
		"the safety number of this person has changed: check it and run signal-cli -a ACCOUNT trust -a RECIPIENT")}
}

func wait(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultWait
	}
	return d
}

// clean returns the text of a failed call, hiding its cause except for the two errors of contexts.
func clean(c *callError) error { return wire.Clean(c, c.Error()) }
