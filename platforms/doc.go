// Package platforms is the vocabulary between Herald's core and the chat platforms: typed ids, the
// Address of a place, the Event that comes in, the Outgoing message that goes out, the Adapter that
// carries both, and the certainty of a send.
//
// It promises that a platform can be added without touching the core: one mandatory interface of five
// methods, and optional one-method interfaces found by type assertion. It knows nobody: no other package
// of Herald is imported here, and no type here says how a session, a turn or a database looks.
//
// Rules that every adapter keeps (the suite in platforms/platformtest checks them):
//
//   - It acknowledges an event to its platform only after Sink.Accept returned nil.
//   - It copies the Address of a reply from the event; it never looks one up.
//   - It reports the outcome of a send as it knows it: delivered, certainly not sent, or unknown.
//   - It decides no access: who may talk is decided in the core from the ids it passes on.
package platforms
