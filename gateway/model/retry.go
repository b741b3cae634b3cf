package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The defaults of a RetryPolicy.
const (
	DefaultAttempts      = 3
	DefaultEmptyAttempts = 3
	DefaultBackoff       = time.Second
	DefaultMaxBackoff    = 30 * time.Second
	DefaultMaxRetryAfter = 2 * time.Minute
)

// RetryPolicy says how often and how fast Retry tries again. The zero value takes the defaults.
type RetryPolicy struct {
	// Attempts is how often a call is made in all, the first time included (agent.api_max_retries); 0 takes
	// DefaultAttempts, 1 never retries.
	Attempts int
	// EmptyAttempts bounds how often an answer without text and tool calls is asked for, the first time
	// included. 0 takes DefaultEmptyAttempts.
	EmptyAttempts int
	// Backoff is the wait before the second attempt. It doubles with each further one up to MaxBackoff, and
	// each wait is shortened at random by up to a half, so that many sessions do not come back together.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// MaxRetryAfter is the longest wait that a provider may ask for. Where it asks for more, the error is
	// returned at once, so that a fallback can answer and the user isn't kept waiting; 0 takes
	// DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// OnRetry, when set, is called before each wait: which attempt failed (from 1), how long the wait is, and
	// why. It runs on the goroutine of Stream.
	OnRetry func(attempt int, wait time.Duration, err error)
	// Rand returns a number in [0,1) for the jitter. nil takes math/rand.
	Rand func() float64
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Attempts <= 0 {
		p.Attempts = DefaultAttempts
	}
	if p.EmptyAttempts <= 0 {
		p.EmptyAttempts = DefaultEmptyAttempts
	}
	if p.Backoff <= 0 {
		p.Backoff = DefaultBackoff
	}
	if p.MaxBackoff <= 0 {
		p.MaxBackoff = DefaultMaxBackoff
	}
	if p.MaxRetryAfter <= 0 {
		p.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if p.Rand == nil {
		p.Rand = rand.Float64
	}
	return p
}

// wait returns how long to wait after the given failed attempt (from 1). ok is false when the provider asks
// for more than the policy allows.
func (p RetryPolicy) wait(attempt int, err *Error) (d time.Duration, ok bool) {
	if err.RetryAfter > p.MaxRetryAfter {
		return 0, false
	}
	d = p.Backoff
	for range attempt - 1 {
		if d *= 2; d >= p.MaxBackoff {
			break
		}
	}
	d = min(d, p.MaxBackoff)
	d -= time.Duration(p.Rand() * float64(d) / 2)
	return max(d, err.RetryAfter), true
}

// Retry returns a model that makes a failed call again while the error is Retryable, with backoff, and that
// asks again when the answer is empty (see Empty). Errors that waiting can't mend are returned at once, and so
// is the end of the context, also in the middle of a wait.
//
// When pieces of a failed answer were delivered already, the next attempt is announced by Delta.Restart.
func Retry(m Model, policy RetryPolicy) Model {
	return &retrying{model: m, policy: policy.withDefaults()}
}

type retrying struct {
	model  Model
	policy RetryPolicy
}

func (r *retrying) Info() Info { return r.model.Info() }

// CloseIdleConnections closes what the wrapped model keeps open between calls.
func (r *retrying) CloseIdleConnections() { CloseIdle(r.model) }

func (r *retrying) Stream(ctx context.Context, req Request, on func(Delta)) (Response, error) {
	out := restartable{on: on}
	empties := 0
	for attempt := 1; ; attempt++ {
		resp, err := r.model.Stream(ctx, req, out.send)
		if err == nil {
			if !Empty(resp) {
				return resp, nil
			}
			empties++
			err = &Error{Kind: Invalid, Provider: r.Info().Provider, Err: errEmpty}
			if empties >= r.policy.EmptyAttempts {
				return Response{}, &Error{Kind: Invalid, Provider: r.Info().Provider,
					Err: fmt.Errorf("%w (%d times)", errEmpty, empties)}
			}
			attempt-- // empty answers have a count of their own
		}
		if ctx.Err() != nil {
			return Response{}, context.Cause(ctx)
		}
		var failed *Error
		if !errors.As(err, &failed) || !failed.Retryable() || attempt >= r.policy.Attempts {
			return Response{}, err
		}
		wait, ok := r.policy.wait(attempt+empties, failed)
		if !ok {
			return Response{}, err
		}
		if r.policy.OnRetry != nil {
			r.policy.OnRetry(max(attempt, 1), wait, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return Response{}, context.Cause(ctx)
		case <-timer.C:
		}
		out.restart()
	}
}

var errEmpty = errors.New("the answer was empty: no text and no tool call")

// Empty reports whether an answer says nothing: no text beyond white space and no tool call, though the
// model claims to have ended by itself. An answer that was cut by the token limit, filtered or refused is
// not empty in this sense: asking again would bring the same.
func Empty(r Response) bool {
	if len(r.ToolCalls) > 0 || strings.TrimSpace(r.Text) != "" {
		return false
	}
	switch r.Finish {
	case "length", "content_filter", "refusal":
		return false
	}
	return true
}

// restartable passes deltas on and knows whether a new attempt has to be announced.
type restartable struct {
	on    func(Delta)
	dirty bool
}

func (r *restartable) send(d Delta) {
	r.dirty = !d.Restart
	if r.on != nil {
		r.on(d)
	}
}

func (r *restartable) restart() {
	if r.dirty {
		r.send(Delta{Restart: true})
	}
}

// CloseIdle closes the connections that a model keeps open between calls, where it keeps any. Calls that
// run are not touched, and the model stays usable.
func CloseIdle(m Model) {
	if c, ok := m.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
