// Package webhook notifies webhooks of finished batches. It owns the file of the registered webhooks, and the
// deliveries to them.
//
// Nothing waits for a delivery. A finished batch joins the queue of each webhook, and a few goroutines per webhook work off its
// queue. So a slow or dead receiver delays no other receiver and no task. A queue has the uids of batches; the tasks are read when
// they are sent.
//
// Every batch is delivered at least once. A cursor per webhook records which batches need not be delivered any more,
// and the next start continues there. Receivers recognise repeated deliveries by DeliveryHeader. A failed delivery is
// retried for a day, unless the answer shows that a retry is useless. Batches whose tasks were deleted meanwhile are
// left out.
//
// # Cursors
//
// Batches end and are delivered out of order, so a cursor is a set of uids and not one number. It is saved some time after a
// delivery. Deliveries since the last save are repeated after a crash. A webhook without a cursor gets only batches that end later.
// If the file is damaged, this holds for all webhooks.
//
// # Caveats
//
//   - Addresses come from users: every connection goes through package outbound.
//   - Headers of a webhook are secret. Lists show them masked.
//   - The webhook of the command line has the nil UUID, and the API cannot change it.
package webhook
