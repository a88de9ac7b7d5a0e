// Package object provides the objects of loads and the operations on them. It creates objects of any resource, or finds
// existing ones.
//
// A Set is the objects of one resource of one load, spread over namespaces, with payloads of random sizes. Loads of watches use
// it too. An operation, which NewOperation returns for the request engine, is one verb or a weighted mix of verbs over several
// resources, sent as one identity or as several tenants.
//
// Operation, tenant and object are drawn from the seed and the number of the arrival, without state, so that an arrival that
// was not sent does not change later ones. Four operations depend on earlier ones. A delete uses the object that was created
// the longest time ago, a deletecollection the namespace that was complete the longest time ago. An update that must name a
// resourceVersion uses the next object that no other update of the load is writing. A get of objects that the load did not
// create uses one of those listed last. In a mix, operations affect each other: a 404 for a deleted object and a 409 for an
// update after a patch are counted as outcomes.
//
// Nothing is encoded while a load runs. Paths and manifests are rendered before; a request copies their pieces into the
// caller's buffers and inserts a number and a payload. Answers are checked piece by piece and not kept: JSON and CBOR to the
// last byte, protobuf by its magic number, compressed answers not at all.
//
// Unmeasured requests use a separate client (net/http), which retries; see asker.
package object
