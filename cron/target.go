package cron

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"herald/platforms"
	"herald/sessions"
)

// Places finds what a target means.
type Places interface {
	// Platforms returns the platforms that run, in any order.
	Platforms() []platforms.Name
	// Rules are those of a platform.
	Rules(name platforms.Name) platforms.Rules
	// Home returns a platform's home channel. ok is false when it has none; an error means that it has one and that it
	// can't be found.
	Home(ctx context.Context, name platforms.Name) (at platforms.Address, ok bool, err error)
	// Find returns the place that a target of the form <platform>[/<account>][:<place>] means. It never takes another one
	// in its place.
	Find(ctx context.Context, target string) (platforms.Address, error)
}

// Provenance is how a target was found; it decides whether the brief may be written into the chat's conversation.
type Provenance string

// The provenances, and none for a bare platform and for the targets that DeliverAll stands for.
const (
	FromOrigin   Provenance = "origin"          // the chat that the job was made in
	FromFallback Provenance = "origin_fallback" // a home channel instead: the job was made outside of a chat
	FromExplicit Provenance = "explicit"        // the author wrote the chat
)

// rank orders provenances: the higher one is kept when two targets are the same place.
func (p Provenance) rank() int {
	switch p {
	case FromOrigin:
		return 3
	case FromFallback:
		return 2
	case FromExplicit:
		return 1
	}
	return 0
}

// Target is one place that a brief goes to.
type Target struct {
	Address platforms.Address `json:"address"`
	// Token is what its author wrote, the first of several that mean this place.
	Token string     `json:"token"`
	From  Provenance `json:"from,omitempty"`
}

// inHomeOrder returns the platforms in the order in which their home channels are asked.
func inHomeOrder(places Places) []platforms.Name {
	rank := func(n platforms.Name) int { return cmp.Or(places.Rules(n).HomeRank, math.MaxInt) }
	return slices.SortedFunc(slices.Values(places.Platforms()), func(a, b platforms.Name) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

// ResolveTargets returns where a job's output goes, each place once, in the order in which it was written. origin is the
// chat that the job was made in; nil, or one without a platform or chat, means no chat. A target that can't be resolved is a
// problem that names it, and the others stand. No target and no problem means that the output is only kept.
func ResolveTargets(ctx context.Context, deliver string, origin *sessions.Origin, places Places) (targets []Target, problems []error) {
	tokens, err := ParseDeliver(deliver)
	if err != nil {
		return nil, []error{err}
	}
	r := resolving{ctx: ctx, places: places, running: inHomeOrder(places), origin: madeIn(origin)}
	quiet := true
	for _, t := range tokens {
		quiet = quiet && (t.Word == DeliverLocal || t.Word == DeliverOrigin)
		r.token(t)
	}
	if len(r.targets) == 0 && !quiet {
		r.problem("nothing of deliver %q names a place that can be reached", deliver)
	}
	return r.targets, r.problems
}

// madeIn returns the origin when it names a chat.
func madeIn(origin *sessions.Origin) *sessions.Origin {
	if origin == nil || origin.Address.Platform == "" || origin.Address.Chat == "" {
		return nil
	}
	return origin
}

// resolving is the resolution of one value.
type resolving struct {
	ctx      context.Context
	places   Places
	running  []platforms.Name
	origin   *sessions.Origin
	targets  []Target
	problems []error
}

func (r *resolving) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *resolving) token(t Token) {
	switch {
	case t.Word == DeliverLocal:
	case t.Word == DeliverOrigin && r.origin != nil:
		r.add(t, r.originPlace(), FromOrigin)
	case t.Word == DeliverOrigin:
		r.fallback(t)
	case t.Word == DeliverAll:
		r.everywhere(t)
	case !slices.Contains(r.running, t.Platform):
		r.problem("delivery target %q: no platform called %q runs here", t.Text, t.Platform)
	case t.Place == "":
		r.bare(t)
	default:
		r.explicit(t)
	}
}

// add keeps a place once. A later token for it can only raise its provenance, so that their order does not matter.
func (r *resolving) add(t Token, at platforms.Address, from Provenance) {
	at.Platform = platforms.Name(strings.ToLower(string(at.Platform)))
	for i := range r.targets {
		if r.targets[i].Address == at {
			if from.rank() > r.targets[i].From.rank() {
				r.targets[i].From = from
			}
			return
		}
	}
	r.targets = append(r.targets, Target{Address: at, Token: t.Text, From: from})
}

// fallback is the first home channel: what "origin" means to a job that was made in no chat. A home channel that can't be
// found is not passed over, or the brief would come out in another place from one day to the next.
func (r *resolving) fallback(t Token) {
	for _, name := range r.running {
		at, ok, err := r.places.Home(r.ctx, name)
		if err != nil {
			r.problem("delivery target %q: %w", t.Text, err)
			return
		}
		if ok {
			r.add(t, at, FromFallback)
			return
		}
	}
}

func (r *resolving) everywhere(t Token) {
	for _, name := range r.running {
		at, ok, err := r.places.Home(r.ctx, name)
		switch {
		case err != nil:
			r.problem("delivery target %q: %w", t.Text, err)
		case ok:
			r.add(t, at, "")
		}
	}
}

// bare is a platform by its name: its home channel, else the job's own chat when that is there.
func (r *resolving) bare(t Token) {
	at, ok, err := r.places.Home(r.ctx, t.Platform)
	if t.Account != "" && (ok || err != nil) {
		ok = true
		at, err = r.places.Find(r.ctx, t.Text)
	}
	if err == nil && !ok {
		if r.origin != nil && r.isOriginPlatform(t) {
			r.add(t, r.origin.Address, "")
			return
		}
		at, err = r.places.Find(r.ctx, t.Text)
	}
	if err != nil {
		r.problem("delivery target %q: %w", t.Text, err)
		return
	}
	r.add(t, at, "")
}

func (r *resolving) isOriginPlatform(t Token) bool {
	at := r.origin.Address
	return sameName(at.Platform, t.Platform) && (t.Account == "" || t.Account == at.Account)
}

func (r *resolving) explicit(t Token) {
	at, err := r.places.Find(r.ctx, t.Text)
	if err != nil {
		r.problem("delivery target %q: %w", t.Text, err)
		return
	}
	if at.Thread == "" && r.places.Rules(at.Platform).StrayThreads && r.origin != nil && at.SameChat(r.origin.Address) {
		if _, stale := r.staleThread(); !stale {
			at.Thread = r.origin.Address.Thread
		}
	}
	r.add(t, at, FromExplicit)
}

// originPlace is the chat that the job was made in, without a thread that is stale.
func (r *resolving) originPlace() platforms.Address {
	if home, stale := r.staleThread(); stale {
		return home
	}
	return r.origin.Address
}

// staleThread reports whether the thread of the job's chat only shows where somebody happened to ask for the job: so it
// is in the home channel of a platform where every message begins a thread. home is that channel, with the thread that
// was chosen for it, if any.
func (r *resolving) staleThread() (home platforms.Address, stale bool) {
	at := r.origin.Address
	if at.Thread == "" || !r.places.Rules(at.Platform).StrayThreads {
		return home, false
	}
	home, ok, err := r.places.Home(r.ctx, platforms.Name(strings.ToLower(string(at.Platform))))
	return home, err == nil && ok && home.SameChat(at)
}

func sameName(a, b platforms.Name) bool { return strings.EqualFold(string(a), string(b)) }
