//! Limits of numbers in settings and run specifications, checked where they are read,
//! so that the fault is placed in the file.

use std::path::{Component, Path};

use serde::{Deserialize, Deserializer, de::Error};

/// A week: nothing here takes longer, and every duration stays far from overflow.
const MAX_SECONDS: f64 = 7.0 * 24.0 * 3600.0;

/// Seconds of a limit: a millisecond to a week.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(f64::deserialize(deserializer)?, 0.001, MAX_SECONDS)
}

/// Seconds of a grace or a wait: none to a week.
pub(crate) fn grace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(f64::deserialize(deserializer)?, 0.0, MAX_SECONDS)
}

/// A share: 0 to 1.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom(format!("{value} is no share from 0 to 1")))
    }
}

/// A relative difference: 0 or more, and a number.
pub(crate) fn relative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(D::Error::custom(format!("{value} is no number from 0 on")))
    }
}

fn within<E: Error>(value: f64, least: f64, most: f64) -> Result<f64, E> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(E::custom(format!("{value} is no number of seconds from {least} to {most}")))
    }
}

/// How many at a time: 1 to 1024.
pub(crate) fn at_a_time<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    count(u64::deserialize(deserializer)?, 1, 1024)
}

/// How many at a time, 0 standing for "as many as fit": 0 to 1024.
pub(crate) fn at_a_time_or_auto<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    count(u64::deserialize(deserializer)?, 0, 1024)
}

/// How many requests or tokens: up to a million.
pub(crate) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    count(u64::deserialize(deserializer)?, 0, 1_000_000)
}

/// A path below the root, where results and caches are written: a course that somebody
/// else wrote must not name a place outside it.
pub(crate) fn inside<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = String::deserialize(deserializer)?;
    let leaves = |part| !matches!(part, Component::Normal(_) | Component::CurDir);
    // A drive letter is an ordinary name elsewhere, and no name that a course needs.
    if Path::new(&path).components().any(leaves) || path.contains(['\\', ':']) {
        return Err(D::Error::custom(format!(
            "`{path}` leads out of the course; give a path below its root, with `/`"
        )));
    }
    Ok(path)
}

fn count<T: TryFrom<u64>, E: Error>(value: u64, least: u64, most: u64) -> Result<T, E> {
    let fits = (least..=most).contains(&value).then(|| T::try_from(value).ok()).flatten();
    fits.ok_or_else(|| E::custom(format!("{value} is no whole number from {least} to {most}")))
}
