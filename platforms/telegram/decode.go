package telegram

import (
	"encoding/json"
	"fmt"

	"github.com/go-telegram/bot/models"
)

// skippedUpdate is an update that could not be read. It is passed over: it would fail again and again, and hold
// up everything behind it.
type skippedUpdate struct {
	id  int64
	err error
}

// decodeUpdates reads the answer of getUpdates. The batch is decoded in one go; only when that fails is
// each update tried alone, and those that fail are returned as skipped. The skipped stay in updates as
// empty ones, so that the offset moves behind them.
func decodeUpdates(raw []byte) (updates []models.Update, skipped []skippedUpdate, err error) {
	var whole struct {
		OK     bool            `json:"ok"`
		Result []models.Update `json:"result"`
	}
	if err = json.Unmarshal(raw, &whole); err == nil {
		if !whole.OK {
			return nil, nil, fmt.Errorf("getUpdates: the answer says neither ok nor an error")
		}
		return whole.Result, nil, nil
	}
	var parts struct {
		OK     bool              `json:"ok"`
		Result []json.RawMessage `json:"result"`
	}
	if err = json.Unmarshal(raw, &parts); err != nil || !parts.OK {
		return nil, nil, fmt.Errorf("getUpdates: unreadable answer of %d bytes: %w", len(raw), orEmpty(err))
	}
	for _, part := range parts.Result {
		update, err := decodeUpdate(part)
		if err != nil {
			skipped = append(skipped, skippedUpdate{update.ID, err})
			if update.ID == 0 {
				continue
			}
			update = models.Update{ID: update.ID}
		}
		updates = append(updates, update)
	}
	if len(updates) == 0 && len(skipped) > 0 {
		return nil, skipped, fmt.Errorf("getUpdates: none of %d updates could be read", len(skipped))
	}
	return updates, skipped, nil
}

// decodeUpdate reads one update. Of a message with a part that is unreadable (a type that is newer than the
// library) it reads the rest. On an error the id is set as far as it could be read.
func decodeUpdate(raw []byte) (models.Update, error) {
	var update models.Update
	err := json.Unmarshal(raw, &update)
	if err != nil {
		if essence, ok := essential(raw); ok {
			update = models.Update{}
			err = json.Unmarshal(essence, &update)
		}
	}
	if err != nil {
		var id struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &id)
		return models.Update{ID: id.ID}, err
	}
	if update.ID <= 0 {
		return models.Update{}, fmt.Errorf("update without an id")
	}
	return update, nil
}

// essentials are the fields of a message that it can't be understood without.
var essentials = []string{
	"message_id", "message_thread_id", "is_topic_message", "from", "sender_chat", "author_signature", "date", "edit_date", "chat",
	"media_group_id", "text", "entities", "caption", "caption_entities", "photo", "document", "audio", "video", "voice",
}

// essential returns an update whose message has only the essentials, and false when it holds no message.
func essential(raw []byte) ([]byte, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	found := false
	for _, kind := range []string{models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateChannelPost} {
		var message map[string]json.RawMessage
		if json.Unmarshal(fields[kind], &message) != nil || message == nil {
			continue
		}
		kept := map[string]json.RawMessage{}
		for _, name := range essentials {
			if value, ok := message[name]; ok {
				kept[name] = value
			}
		}
		found = true
		fields[kind], _ = json.Marshal(kept)
	}
	out, err := json.Marshal(fields)
	return out, found && err == nil
}

func orEmpty(err error) error {
	if err == nil {
		return fmt.Errorf("no ok in it")
	}
	return err
}
