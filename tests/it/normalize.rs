//! Cases of this domain: `fixtures/cases/normalize`.
