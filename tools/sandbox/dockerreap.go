package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// orphanAge is how long a container must have been ended before it counts as an orphan.
const orphanAge = 600 * time.Second

// reap removes the orphans of a profile: containers of Herald's that ended longer ago than age. One whose end is not
// known is kept, and one that can't be removed does not keep the others from it. It returns how many were removed.
func (l lifecycle) reap(ctx context.Context, now time.Time, age time.Duration) (removed int, err error) {
	own := l.opts.labels()
	found, err := listContainers(ctx, l.engine, map[string]string{LabelAgent: "1", LabelIdentity: own[LabelIdentity], LabelHome: own[LabelHome]})
	if err != nil {
		return 0, fmt.Errorf("the container engine does not list its containers: %w", err)
	}
	for _, s := range found {
		if s.State != container.StateExited {
			continue
		}
		r, err := l.engine.api.ContainerInspect(ctx, s.ID, client.ContainerInspectOptions{})
		if err != nil || !orphaned(r.Container.State, now, age) {
			continue
		}
		if err := forceRemove(ctx, l.engine, s.ID); err != nil {
			l.opts.Log.Warn().Err(err).Msg("sandbox: an orphaned container stays")
			continue
		}
		removed++
	}
	return removed, nil
}

// orphaned reports whether a container ended longer ago than age.
func orphaned(s *container.State, now time.Time, age time.Duration) bool {
	if s == nil || s.Status != container.StateExited {
		return false
	}
	ended, err := time.Parse(time.RFC3339Nano, s.FinishedAt)
	if err != nil || ended.Year() <= 1 {
		return false // it does not say when
	}
	return now.Sub(ended) > age
}
