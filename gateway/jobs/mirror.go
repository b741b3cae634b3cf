package jobs

import (
	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// mirror makes a brief that has arrived part of the conversation of its chat. It returns how.
func (j *Jobs) mirror(tx sessions.Tx, row sessions.OutboxRow, b Brief, _ platforms.ThreadID) ([]string, error) {
	at := row.Message.Address
	if !b.Mirror || b.Text == "" || !cron.IsDM(b.Origin, at) {
		return nil, nil
	}
	origin := sessions.Origin{Address: at, ChatType: platforms.DM}
	if b.Origin != nil && cron.MatchesOrigin(at, b.Origin) {
		origin = *b.Origin
	}
	key := sessions.KeyFor(sessions.KeySource{Profile: string(j.o.Account), Platform: at.Platform, ChatType: platforms.DM, Scope: origin.Scope,
		Chat: at.Chat, Thread: at.Thread, User: origin.User, UserAlt: origin.UserAlt}, sessions.DefaultKeyOptions())
	s, err := tx.OpenSession(key, origin, j.o.Now())
	if err != nil {
		return nil, err
	}
	return []string{"dm"}, tx.Append(&sessions.Message{Session: s.ID, Role: sessions.User, Kind: sessions.KindMirror, Active: true, At: j.o.Now(),
		Content: "[Cron delivery: " + b.Name + "]\n" + b.Text})
}
