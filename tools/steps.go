package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// errTimeLimit is the cause of a context that ended because the call's time was up.
var errTimeLimit = errors.New("the time limit of the call is over")

// errBatchLimit is the same for a group of calls that ran side by side.
var errBatchLimit = errors.New("the time limit of the calls that ran side by side is over")

// maxStack bounds a stack in the log, in bytes.
const maxStack = 8 << 10

func stack() string {
	s := debug.Stack()
	return string(s[:min(len(s), maxStack)])
}

// keep completes the result and journals it as the model will see it.
func (b *Bus) keep(ctx context.Context, inv *Invocation, next Next) Result {
	r := next(ctx, inv)
	if b.o.Journal == nil {
		return r
	}
	err := safely(func() error { return b.o.Journal.Finished(context.WithoutCancel(ctx), inv.Call, r) })
	if err != nil {
		b.o.Log.Error().Err(err).Str("tool", inv.Call.Name).Str("call", string(inv.Call.ID)).Str("exit", r.Exit).
			Msg("result of a tool call not recorded")
	}
	return r
}

// announce measures the call and tells subscribers that it has ended.
func (b *Bus) announce(ctx context.Context, inv *Invocation, next Next) Result {
	r := next(ctx, inv)
	r.Took = b.o.Clock().Sub(inv.started)
	final := r
	b.publish(Event{Phase: PhaseFinished, Call: inv.Call, Spec: inv.Spec, Result: &final})
	return r
}

// bound completes the result, bounds error texts, and stores what is too long for the model.
func (b *Bus) bound(ctx context.Context, inv *Invocation, next Next) Result {
	r := complete(next(ctx, inv))
	limit := inv.Spec.MaxResult
	if limit == 0 {
		limit = b.o.MaxResult
	}
	if limit < 0 {
		return r
	}
	n := len(r.Content)
	if n > limit || b.o.BatchMax > 0 {
		// A text has at most as many characters as bytes: most results need no count.
		n = utf8.RuneCountInString(r.Content)
	}
	preview := b.preview()
	if n <= limit {
		if spend(ctx, n) || n <= preview+storedFrame {
			return r // a pointer to a file would not make it shorter
		}
		limit = min(limit, max(preview, minInline))
	}
	r.Truncated = true
	if b.o.Results == nil {
		r.Content = inlineCut(r.Content, limit, "this session stores no results")
		return r
	}
	path, visible, err := b.store(ctx, inv.Call, r.Content)
	if err != nil {
		b.o.Log.Warn().Err(err).Str("tool", inv.Call.Name).Msg("long tool result not stored, it was cut")
		r.Content = inlineCut(r.Content, limit, "it could not be stored")
		return r
	}
	r.Stored = path
	r.Content = persistedBlock(r.Content, visible, preview, pagingHint(inv.Call.Caller, b.o.Registry))
	return r
}

// store saves a long result and returns its path here and where the caller's tools run.
func (b *Bus) store(ctx context.Context, call Call, content string) (path, visible string, err error) {
	err = safely(func() error {
		id := fmt.Sprintf("%s-%d-%s", call.Caller.Session, call.Caller.Turn, call.ID)
		if path, err = b.o.Results.Save(id, content); err != nil {
			return err
		}
		visible, err = b.o.Results.visible(context.WithoutCancel(ctx), call.Caller, path)
		return err
	})
	return path, visible, err
}

// withExit makes Exit and IsError agree.
func withExit(r Result) Result {
	if r.Exit == "" {
		r.Exit = ExitOK
		if r.IsError {
			r.Exit = ExitError
		}
	}
	r.IsError = r.IsError || r.Exit != ExitOK
	return r
}

// complete fills in what a Result must have.
func complete(r Result) Result {
	r = withExit(r)
	if r.IsError {
		r.Content = boundError(r.Content)
	}
	r.Content = strings.ToValidUTF8(r.Content, "\uFFFD")
	if r.Content == "" {
		r.Content = `{"success":true,"note":"the tool gave no output"}`
		if r.IsError {
			r.Content = failure{Error: "the tool failed and did not say why"}.result(r.Exit).Content
		}
	}
	return r
}

// redact takes secrets out of results.
func (b *Bus) redact(ctx context.Context, inv *Invocation, next Next) Result {
	r := next(ctx, inv)
	r.Content, r.Summary = b.clean(r.Content), b.clean(r.Summary)
	return r
}

// clean redacts one text. A redactor that panics withholds it.
func (b *Bus) clean(s string) string {
	if b.o.Redactor == nil || s == "" {
		return s
	}
	out := ""
	if err := safely(func() error { out = b.o.Redactor.String(s); return nil }); err != nil {
		b.o.Log.Error().Err(err).Str("stack", stackOf(err)).Msg("redaction failed, the text was withheld")
		return "[withheld: the text could not be checked for secrets]"
	}
	return out
}

// guard turns a panic of the steps below, which are partly other people's code, into a result.
func (b *Bus) guard(ctx context.Context, inv *Invocation, next Next) (r Result) {
	err := safely(func() error { r = next(ctx, inv); return nil })
	if err != nil {
		b.o.Log.Error().Err(err).Str("tool", inv.Call.Name).Str("stack", stackOf(err)).Msg("tool call panicked")
		r = toolError(err)
	}
	return r
}

// find looks the tool up and makes sure that the session has it.
func (b *Bus) find(ctx context.Context, inv *Invocation, next Next) Result {
	if ctx.Err() != nil {
		return notRun(whyNot(ctx))
	}
	name := inv.Call.Name
	inv.entry = b.o.Registry.lookup(name)
	allowed := inv.Call.Caller.Tools
	if inv.entry != nil && (allowed == nil || slices.Contains(allowed, name)) {
		inv.Spec = inv.entry.tool.Spec
		return next(ctx, inv)
	}
	if allowed == nil {
		allowed = b.o.Registry.Names()
	}
	f := failure{Error: fmt.Sprintf("Unknown tool: %s. It was NOT invoked.", shorten(name))}
	if inv.entry != nil {
		f.Error = fmt.Sprintf("The tool %s is not available in this session. It was NOT invoked.", name)
	}
	if near := nearest(name, allowed); near != "" {
		f.Hint = "Did you mean " + near + "?"
	} else {
		f.Allowed = ellipsis(strings.Join(slices.Sorted(slices.Values(allowed)), ", "), maxArgumentMessage)
	}
	return f.result(ExitInvalid)
}

// check coerces and validates the arguments.
func (b *Bus) check(ctx context.Context, inv *Invocation, next Next) Result {
	parameters := inv.Spec.Parameters
	if inv.Spec.Describe != nil {
		_, parameters = b.o.Registry.described(inv.entry)
	}
	s, fresh, err := inv.entry.schema.get(parameters)
	if err != nil && fresh {
		b.o.Log.Warn().Err(err).Str("tool", inv.Call.Name).Msg("parameters can't be used to check arguments, calls are taken as they are")
	}
	if s == nil {
		s = &schema{}
	}
	c := coercer{schema: s}
	args, warnings, err := c.args(inv.Call.Args)
	if err != nil {
		bad := &ArgumentError{Path: "arguments", Constraint: "type", Value: shorten(string(inv.Call.Args)), Allowed: "a JSON object",
			Message: cut(err.Error())}
		return invalid(inv.Call.Name, bad, parameters)
	}
	for _, w := range warnings {
		b.o.Log.Warn().Str("tool", inv.Call.Name).Str("call", string(inv.Call.ID)).Msg(w)
	}
	if err := s.validate(args); err != nil {
		var bad *ArgumentError
		if errors.As(err, &bad) {
			return invalid(inv.Call.Name, bad, parameters)
		}
		b.o.Log.Warn().Err(err).Str("tool", inv.Call.Name).Msg("arguments not checked")
	}
	inv.Call.Args = args
	return next(ctx, inv)
}

// invalid tells a model what to repair. The whole schema goes along when arguments are missing.
func invalid(name string, bad *ArgumentError, parameters []byte) Result {
	f := failure{
		Error:      fmt.Sprintf("Invalid arguments for %s: %s. The tool was NOT invoked.", name, bad.Message),
		Path:       bad.Path,
		Constraint: bad.Constraint,
		Value:      bad.Value,
		Allowed:    bad.Allowed,
		Hint:       "Correct the arguments and call the tool again.",
	}
	if bad.Constraint == "required" && bad.Path == "arguments" {
		f.Parameters = parameters
	}
	return f.result(ExitInvalid)
}

// approve asks whether the call may run. Any doubt counts as a refusal.
func (b *Bus) approve(ctx context.Context, inv *Invocation, next Next) Result {
	if b.o.Approver == nil {
		return next(ctx, inv)
	}
	var d Decision
	err := safely(func() (err error) { d, err = b.o.Approver.Approve(ctx, inv.Call, inv.Spec); return err })
	switch {
	case ctx.Err() != nil:
		return notRun(whyNot(ctx))
	case err != nil:
		b.o.Log.Error().Err(err).Str("stack", stackOf(err)).Str("tool", inv.Call.Name).Msg("approval failed, the call is denied")
		return failure{Error: "Denied: the approval could not be decided. The tool was NOT invoked."}.result(ExitDenied)
	case !d.Allowed:
		reason := strings.TrimRight(d.Reason, ". ")
		if reason == "" {
			reason = "not approved"
		}
		return failure{Error: "Denied: " + reason + ". The tool was NOT invoked.",
			Hint: "Don't try the same thing in another way; ask the person or go on without it."}.result(ExitDenied)
	}
	return next(ctx, inv)
}

// checkpoint surrounds calls that may change files.
func (b *Bus) checkpoint(ctx context.Context, inv *Invocation, next Next) Result {
	if b.o.Checkpointer == nil || inv.Spec.ReadOnly {
		return next(ctx, inv)
	}
	var end func(context.Context, Result)
	err := safely(func() (err error) { end, err = b.o.Checkpointer.Begin(ctx, inv.Call, inv.Spec); return err })
	if err != nil {
		b.o.Log.Warn().Err(err).Str("stack", stackOf(err)).Str("tool", inv.Call.Name).Msg("no checkpoint was taken")
	}
	r := next(ctx, inv)
	if end != nil {
		if err := safely(func() error { end(context.WithoutCancel(ctx), r); return nil }); err != nil {
			b.o.Log.Warn().Err(err).Str("stack", stackOf(err)).Str("tool", inv.Call.Name).Msg("checkpoint not completed")
		}
	}
	return r
}

// begin journals the start; from here on the call may have an effect.
func (b *Bus) begin(ctx context.Context, inv *Invocation, next Next) Result {
	if ctx.Err() != nil {
		return notRun(whyNot(ctx))
	}
	if !b.enter() {
		return notRun("Herald is shutting down")
	}
	counted := true
	defer func() {
		if counted {
			b.leave()
		}
	}()
	if b.o.Journal != nil {
		if err := safely(func() error { return b.o.Journal.Started(ctx, inv.Call, inv.Spec) }); err != nil {
			if ctx.Err() != nil {
				return notRun(whyNot(ctx))
			}
			b.o.Log.Error().Err(err).Str("tool", inv.Call.Name).Str("call", string(inv.Call.ID)).
				Msg("start of a tool call not recorded, it is not run")
			return failure{Error: "Not run: the start of the call could not be recorded. The tool was NOT invoked."}.result(ExitError)
		}
	}
	b.publish(Event{Phase: PhaseStarted, Call: inv.Call, Spec: inv.Spec})
	counted = false // limit's goroutine leaves
	return next(ctx, inv)
}

// limit bounds the time of the handler and abandons one that ignores its context.
func (b *Bus) limit(ctx context.Context, inv *Invocation, next Next) Result {
	limit := inv.Spec.Timeout
	if limit == 0 {
		limit = b.o.DefaultTimeout
	}
	hctx, cancel := context.WithCancel(ctx)
	if limit > 0 {
		cancel()
		hctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeLimit)
	}
	defer cancel()
	call, spec := inv.Call, inv.Spec
	out := &sink{send: func(text string) {
		b.publish(Event{Phase: PhaseProgress, Call: call, Spec: spec, Text: b.clean(text)})
	}}
	hctx = context.WithValue(hctx, progressKey{}, out)

	done := make(chan Result, 1)
	given := *inv // an abandoned handler keeps its own copy
	go func() {
		defer b.leave()
		done <- next(hctx, &given)
	}()
	r, ended := b.wait(hctx, done)
	out.close()
	late := errors.Is(context.Cause(hctx), errTimeLimit)
	if errors.Is(context.Cause(ctx), errBatchLimit) {
		late, limit = true, b.o.BatchTimeout
	}
	switch {
	case !ended:
		b.abandoned.Add(1)
		go func() { <-done; b.abandoned.Add(-1) }()
		b.o.Log.Warn().Str("tool", call.Name).Str("call", string(call.ID)).Bool("timeout", late).Msg("tool ignores its context, abandoned")
		if late {
			return timedOut(call.Name, limit, "It did not stop and may still be running")
		}
		return stopped(call.Name, "It did not stop at once and may still be running")
	case r.Exit == exitHandlerError && late:
		return timedOut(call.Name, limit, "It was stopped")
	case r.Exit == exitHandlerError && ctx.Err() != nil:
		return stopped(call.Name, "It was stopped")
	case r.Exit == exitHandlerError:
		r.Exit = ExitError
	}
	return withExit(r)
}

// wait returns the handler's result, or ended false when it is still running the grace after its context ended.
func (b *Bus) wait(ctx context.Context, done <-chan Result) (r Result, ended bool) {
	select {
	case r = <-done:
		return r, true
	case <-ctx.Done():
	}
	grace := time.NewTimer(b.o.Grace)
	defer grace.Stop()
	select {
	case r = <-done:
		return r, true
	case <-grace.C:
		return Result{}, false
	}
}

// exitHandlerError marks, between run and limit, a handler that returned an error: the context decides
// what it means.
const exitHandlerError = "handler error"

// run calls the handler.
func (b *Bus) run(ctx context.Context, inv *Invocation) (r Result) {
	err := safely(func() (err error) { r, err = inv.entry.tool.Run(ctx, inv.Call); return err })
	if err == nil {
		return r
	}
	if s := stackOf(err); s != "" {
		b.o.Log.Error().Err(err).Str("tool", inv.Call.Name).Str("stack", s).Msg("tool panicked")
	}
	failed := toolError(err)
	failed.Exit = exitHandlerError
	failed.Media = r.Media
	return failed
}

// whyNot says why a call can no longer begin.
func whyNot(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errBatchLimit) {
		return errBatchLimit.Error()
	}
	return "interrupted"
}

func notRun(why string) Result {
	return failure{Error: "not run: " + why + ". The tool was NOT invoked."}.result(ExitCancelled)
}

func timedOut(name string, limit time.Duration, state string) Result {
	return failure{Error: fmt.Sprintf("%s took longer than its limit of %s. %s; what it has done so far is not known.", name, limit, state)}.result(ExitTimeout)
}

func stopped(name, state string) Result {
	return failure{Error: fmt.Sprintf("%s was interrupted. %s; what it has done so far is not known.", name, state)}.result(ExitCancelled)
}
