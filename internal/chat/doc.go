// Package chat holds conversations about documents: a language model of a provider answers questions, and searches for the documents
// that it needs.
//
// A workspace defines the provider, its key and the prompts; all workspaces are in one small file. A conversation has
// no state here: the client sends all messages each time. Converse calls the provider, streams its words to the client,
// runs the searches that the model asks for, and calls the provider again with the hits, until the model is done. The
// Searcher that it gets decides what the client may search.
//
// The stream of a provider is decoded here and not by the library of OpenAI:
// docs/decisions/0007-own-reader-for-model-streams.md.
//
// # A conversation
//
// Converse has a bounded number of rounds. In each it sends all messages to the provider, and passes its chunks on to
// the client without the calls of tools. Then it runs the searches that these calls ask for, and adds what they found
// to the messages. In the last round the model may not search. What searches find is bounded over all rounds, because
// each round sends it again.
//
// # Secrets
//
// Providers quote in their errors what they were sent. Failure texts are cleaned of the key and of the address before a client or the
// log gets them (conversation.clean, endpoint.name). A stored key is not sent to another origin: a change of the address needs the
// key again.
//
// # Caveats
//
//   - Providers deviate from the API that they claim to have: chunks lack members, calls share an index, streams lack their last
//     empty line. Each such case is handled where it is read.
//   - A failure after the first chunk is an event of the stream, because the status was already sent.
package chat
