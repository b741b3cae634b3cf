package brief

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// describeTimeout bounds what is asked of a platform about a place before something is sent there.
const describeTimeout = 10 * time.Second

// place returns a place as events from there name it, so that the conversation of a reply is known before there is one:
// what the platform says of it, and for the job's own chat what was known when the job was made.
func (w *Writer) place(ctx context.Context, at platforms.Address, origin *sessions.Origin) sessions.Origin {
	p := sessions.Origin{Address: at}
	if w.o.Describe != nil {
		ctx, cancel := context.WithTimeout(ctx, describeTimeout)
		room, err := w.o.Describe(ctx, at)
		cancel()
		if err == nil {
			p = sessions.Origin{Address: room.Address, ChatType: room.Type, Scope: room.Scope, ChatName: room.Name, User: room.User}
		} else {
			w.o.Log.Debug().Err(err).Str("platform", string(at.Platform)).
				Msg("cron: a place can't be described; what is known of it is used")
		}
	}
	if origin != nil && p.Address.SameChat(origin.Address) {
		p.ChatType, p.Scope = cmp.Or(p.ChatType, origin.ChatType), cmp.Or(p.Scope, origin.Scope)
		p.ChatName, p.Topic = cmp.Or(p.ChatName, origin.ChatName), origin.Topic
		if p.ChatType == platforms.DM {
			p.User, p.UserAlt, p.UserName = cmp.Or(origin.User, p.User), origin.UserAlt, origin.UserName
		}
	}
	if p.ChatType == "" && cron.IsDM(w.o.Rules, origin, p.Address) {
		p.ChatType = platforms.DM
	}
	return p
}

func topicName(id cron.JobID, at platforms.Address) string {
	return string(id) + "/" + string(at.Account) + "/" + string(at.Chat)
}

// topic returns the topic that a job has in a chat; empty for none yet.
func (w *Writer) topic(ctx context.Context, id cron.JobID, at platforms.Address) (thread platforms.ThreadID) {
	if !w.rules(at.Platform).Topics || at.Thread != "" {
		return ""
	}
	err := w.o.Store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(sessions.SpaceJobTopic, topicName(id, at))
		if err == nil {
			thread = platforms.ThreadID(strings.Trim(string(value.Data), `"`))
		}
		return err
	})
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		w.o.Log.Warn().Err(err).Str("job", string(id)).Msg("cron: the topic of a job can't be read; it gets a new one")
	}
	return thread
}

// keepTopic notes the topic that a brief has gone to, and forgets the topics of jobs that are gone.
func (w *Writer) keepTopic(tx sessions.Tx, row sessions.OutboxRow, b Brief, thread platforms.ThreadID) error {
	at := row.Message.Address
	if !w.rules(at.Platform).Topics || row.Message.Thread == "" || thread == "" {
		return nil
	}
	all, err := tx.Values(sessions.SpaceJobTopic)
	if err != nil {
		return err
	}
	data, name := `"`+string(thread)+`"`, topicName(b.Job, at)
	for _, v := range all {
		if v.Name == name && string(v.Data) == data {
			return nil
		}
		id, _, _ := strings.Cut(v.Name, "/")
		if _, err := tx.Job(cron.JobID(id)); errors.Is(err, sessions.ErrNotFound) {
			if err := tx.SetValue(sessions.SpaceJobTopic, v.Name, nil, w.o.Now()); err != nil {
				return err
			}
		}
	}
	return tx.SetValue(sessions.SpaceJobTopic, name, []byte(data), w.o.Now())
}
