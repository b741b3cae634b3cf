package sandbox

import (
	"context"
	"fmt"
)

// Start implements Environment.
func (r *remote) Start(ctx context.Context, c Command) (Process, error) {
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
