package sandbox

import (
	"context"
	"fmt"
)

// Start implements Environment. The process lives as long as its connection.
func (r *remote) Start(ctx context.Context, c Command) (Process, error) {
	if c.TTY != nil {
		return nil, fmt.Errorf("the %s environment has no terminals", r.Backend())
	}
	if c.Input {
		return nil, fmt.Errorf("the %s environment keeps no input open", r.Backend())
	}
	e, err := r.begin(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	p := e.(*remoteCommand)
	select {
	case <-p.started:
	case <-p.done:
	case <-ctx.Done():
		<-p.end()
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

// Kill implements Environment.
func (r *remote) Kill(ctx context.Context, p Process) error {
	rp, ok := p.(*remoteCommand)
	if !ok || rp.r != r {
		return fmt.Errorf("process %s belongs to another environment", p.ID())
	}
	for _, ch := range []<-chan struct{}{rp.end(), rp.done} {
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ID implements Process.
func (p *remoteCommand) ID() string { return p.id }

// PID implements Process.
func (p *remoteCommand) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// Done implements Process.
func (p *remoteCommand) Done() <-chan struct{} { return p.done }

// ExitCode implements Process.
func (p *remoteCommand) ExitCode() int { return p.outcome().code }

// Resume implements Environment.
func (r *remote) Resume(_ context.Context, ref Ref, _ Command) (Process, error) {
	return nil, fmt.Errorf("process %s: %w", ref.ID, ErrGone)
}

// Write implements Process.
func (p *remoteCommand) Write([]byte) (int, error) {
	return 0, fmt.Errorf("process %s has no input", p.id)
}

// CloseInput implements Process.
func (p *remoteCommand) CloseInput() error { return fmt.Errorf("process %s has no input", p.id) }

// Ref implements Process.
func (p *remoteCommand) Ref() Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Ref{ID: p.id, PID: p.pid, Start: p.startTime, Mark: p.mark}
}
