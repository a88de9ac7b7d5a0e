// Package object provides the operations of loads on objects of any resource. It creates the objects, or finds
// existing ones.
//
// A Set holds the objects of one resource that a load uses, spread over namespaces, with payloads of random sizes.
// Loads of kind "watches" use Sets too. NewOperation returns an operation for the request engine: one verb on one
// resource, or a weighted mix of verbs and resources, sent as one identity or as several tenants.
//
// Operation, tenant and object of an arrival are functions of the seed and of the arrival's number, so that an
// arrival that was not sent does not change later ones. Four operations depend on earlier requests instead. A delete
// uses the object that was created the longest time ago. A deletecollection uses the namespace that was complete the
// longest time ago. An update that must name a resourceVersion uses the next object without another update in flight.
// A get of objects that the load did not create uses one of the objects in the latest list. In a mix, operations
// affect each other: a 404 for a deleted object and a 409 for an update after a patch are counted as outcomes.
//
// No manifest is encoded while a load runs: paths and manifests are rendered before. A request copies their pieces
// into the caller's buffers and inserts a number and a payload. Answers are checked piece by piece and not kept: JSON
// and CBOR completely, protobuf only by its magic number, and compressed answers not at all.
//
// Requests that are not measured are sent by a separate client (net/http) with retries, see asker.
package object
