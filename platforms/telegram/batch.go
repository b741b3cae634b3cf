package telegram

import (
	"context"
	"strconv"
	"sync"

	"github.com/go-telegram/bot/models"

	"herald/platforms"
)

// events turns updates into events, in order. An update that makes none is counted. The error is ctx's,
// from waiting to learn the bot's own name, which only groups need.
func (a *Adapter) events(ctx context.Context, updates []models.Update) ([]platforms.Event, error) {
	if err := a.learnName(ctx, updates); err != nil {
		return nil, err
	}
	verdicts := a.verdicts(updates)
	events := make([]platforms.Event, 0, len(updates))
	albums := map[string]int{} // album: index in events
	for i := range updates {
		u := &updates[i]
		made, reason := a.convert(u, verdicts[i])
		if len(made) == 0 {
			a.s.Metrics.Dropped(reason)
			a.s.Log.Debug().Int64("update", u.ID).Str("reason", reason).Msg("update makes no event")
			continue
		}
		if key := albumKey(messageOf(u)); key != "" {
			if at, ok := albums[key]; ok {
				mergeAlbum(&events[at], made[0])
				continue
			}
			albums[key] = len(events)
		}
		events = append(events, made...)
	}
	return events, nil
}

// learnName waits until getMe has told the bot's name, when an update needs it.
func (a *Adapter) learnName(ctx context.Context, updates []models.Update) error {
	for i := range updates {
		for _, m := range []*models.Message{messageOf(&updates[i]), updates[i].EditedMessage} {
			if m == nil || m.Chat.Type == models.ChatTypePrivate {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, a.s.PollMargin)
			defer cancel()
			return a.me.wait(ctx)
		}
	}
	return nil
}

// verdicts judges the new message of each update. The pictures of an album share one verdict, that of the
// picture that speaks to the bot: only one of them has the caption.
func (a *Adapter) verdicts(updates []models.Update) []verdict {
	me := a.me.profile()
	out := make([]verdict, len(updates))
	best := map[string]verdict{}
	for i := range updates {
		m := messageOf(&updates[i])
		if m == nil {
			continue
		}
		out[i] = a.judge(m, me)
		if key := albumKey(m); key != "" {
			if was, ok := best[key]; !ok || out[i].addressed && !was.addressed {
				best[key] = out[i]
			}
		}
	}
	for key, v := range best {
		best[key] = a.albums.share(key, v)
	}
	for i := range updates {
		if v, ok := best[albumKey(messageOf(&updates[i]))]; ok {
			out[i].drop, out[i].addressed, out[i].observed = v.drop, v.addressed, v.observed
		}
	}
	return out
}

// albumsKept is how many albums are remembered while the rest of them arrives.
const albumsKept = 32

// albumVerdicts remembers which albums speak to the bot, for pictures that come in a later batch.
type albumVerdicts struct {
	mu   sync.Mutex
	said map[string]verdict
}

// share returns the verdict for an album: an earlier one that was addressed, else v.
func (w *albumVerdicts) share(key string, v verdict) verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.said[key]; ok && was.addressed {
		return was
	}
	if !v.addressed {
		return v
	}
	if w.said == nil || len(w.said) >= albumsKept {
		w.said = map[string]verdict{}
	}
	w.said[key] = v
	return v
}

func albumKey(m *models.Message) string {
	if m == nil || m.MediaGroupID == "" {
		return ""
	}
	return strconv.FormatInt(m.Chat.ID, 10) + "/" + m.MediaGroupID
}

// mergeAlbum adds the picture and the caption of one more update to an album's event.
func mergeAlbum(into *platforms.Event, more platforms.Event) {
	into.Message.Attachments = append(into.Message.Attachments, more.Message.Attachments...)
	if more.Message.Text != "" {
		if into.Message.Text != "" {
			into.Message.Text += "\n"
		}
		into.Message.Text += more.Message.Text
	}
}
