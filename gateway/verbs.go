package gateway

import (
	"context"

	"herald/gateway/access"
	"herald/gateway/admin"
	"herald/gateway/approval"
	"herald/gateway/delivery"
	"herald/gateway/directory"
	"herald/gateway/jobs/desk"
	"herald/platforms"
)

// verbs are what the control socket can do.
func (g *Gateway) verbs(view *admin.Overview) map[string]admin.Verb {
	clerk := g.scheduled.desk.Clerk(g.scheduled.jobs)
	return map[string]admin.Verb{
		"identify": admin.Plain(func(context.Context) (admin.Identity, error) { return view.Identity, nil }),
		"status":   admin.Plain(view.Status),
		"sessions": admin.With(func(ctx context.Context, a admin.SessionsArgs) ([]admin.SessionLine, error) {
			return admin.ListSessions(ctx, g.store, a)
		}),
		"send": admin.With(g.send),
		"channels": admin.With(func(ctx context.Context, q directory.Query) ([]directory.Channel, error) {
			return g.directory.Channels(ctx, q)
		}),
		"backup": admin.With(func(ctx context.Context, a admin.BackupArgs) (admin.BackupArgs, error) {
			return a, g.store.Backup(ctx, a.Dest)
		}),
		"check":     admin.Plain(g.store.Check),
		"pairing":   admin.With(func(ctx context.Context, a access.PairingArgs) (any, error) { return g.pairing.Do(ctx, a) }),
		"approvals": admin.Plain(func(ctx context.Context) (any, error) { return approval.List(ctx, g.store) }),
		"cron":      admin.With(func(ctx context.Context, a desk.Args) (desk.Reply, error) { return clerk.Do(ctx, a) }),
	}
}

// send sends what the command line asks for to the address that its target means.
func (g *Gateway) send(ctx context.Context, a delivery.SendArgs) (delivery.Sent, error) {
	at, err := g.directory.Find(ctx, a.Target)
	if err != nil {
		return delivery.Sent{}, err
	}
	return g.worker.Send(ctx, at, a.Text, a.Files, g.attachOwn)
}

// attachOwn takes out the files that a text of the command line names: they are files of this machine.
func (g *Gateway) attachOwn(ctx context.Context, text string, at platforms.Address) (rest string, files []platforms.Attachment,
	refused []string) {
	media := g.terms.Chat().Media
	media.Resolve = nil
	rest, files, list := media.Attach(ctx, "", text, at.Platform, g.accounts.Traits(at), g.now())
	for _, r := range list {
		refused = append(refused, r.Name+": "+r.Reason)
	}
	return rest, files, refused
}
