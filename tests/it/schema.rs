//! Cases of this domain: `fixtures/cases/schema`.
