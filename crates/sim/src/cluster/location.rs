//! Locations of machines: machine < rack < room < cluster.
//!
//! Racks of the same name in two rooms are two racks. A machine may be in a room without a rack, in a rack without a room, or in neither.
//! The levels are those of Fuxi's locality tree (Zhang et al., VLDB 2014, section 3.1); their use by task sets is ours.

use std::collections::BTreeMap;

use super::scope::Area;
use super::spec::by_name;
use plimsoll_base::error::did_you_mean;
use plimsoll_base::units::MachineId;

/// The id of a rack; ids are dense, in order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct RackId(pub u32);

/// The id of a room; ids are dense, in order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct RoomId(pub u32);

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Location {
    /// One machine.
    Machine(MachineId),
    /// A rack.
    Rack(RackId),
    /// A room.
    Room(RoomId),
    /// The whole cluster.
    Cluster,
}

/// A rack or a room: its name and its machines.
#[derive(Clone, Debug)]
struct LocationNode {
    name: String,
    area: Area,
}

/// The rack and the room of every machine.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    /// The rack and the room of each machine.
    of: Vec<(Option<RackId>, Option<RoomId>)>,
    racks: Vec<(LocationNode, Option<RoomId>)>,
    rooms: Vec<LocationNode>,
    room_names: BTreeMap<String, RoomId>,
    rack_names: BTreeMap<(Option<RoomId>, String), RackId>,
    /// Names of machines, as in the cluster's description.
    machine_names: Vec<(String, MachineId, u32)>,
}

impl Locations {
    /// Creates locations without racks and rooms, but with named machines: each name with its first machine and the number of machines.
    pub fn named(machine_names: Vec<(String, MachineId, u32)>) -> Locations {
        Locations { machine_names, ..Locations::default() }
    }

    /// Returns the number of machines with a location.
    pub fn machines(&self) -> usize {
        self.of.len()
    }

    /// Adds the next machine, in this rack and room.
    pub fn push(&mut self, rack: Option<&str>, room: Option<&str>) {
        let machine = MachineId(self.of.len() as u32);
        let node = |name: &str| LocationNode { name: name.to_owned(), area: Area::default() };
        let room = room.map(|name| {
            let room = *self.room_names.entry(name.to_owned()).or_insert_with(|| {
                self.rooms.push(node(name));
                RoomId(self.rooms.len() as u32 - 1)
            });
            self.rooms[room.0 as usize].area.insert(machine);
            room
        });
        let rack = rack.map(|name| {
            let rack = *self.rack_names.entry((room, name.to_owned())).or_insert_with(|| {
                self.racks.push((node(name), room));
                RackId(self.racks.len() as u32 - 1)
            });
            self.racks[rack.0 as usize].0.area.insert(machine);
            rack
        });
        self.of.push((rack, room));
    }

    /// Returns the rack of a machine.
    pub fn rack(&self, machine: MachineId) -> Option<RackId> {
        self.of[machine.index()].0
    }

    /// Returns the room of a machine.
    pub fn room(&self, machine: MachineId) -> Option<RoomId> {
        self.of[machine.index()].1
    }

    /// Returns the numbers of racks and rooms.
    pub fn counts(&self) -> (usize, usize) {
        (self.racks.len(), self.rooms.len())
    }

    /// Finds a room or rack by name: `hz`, or a rack as `hz/r1` (`/r1` outside all rooms); or a machine by name or number.
    ///
    /// Errors: a message with the unknown name and the nearest known one; the caller adds the place in the input.
    pub fn find(&self, name: &str) -> Result<Location, String> {
        let found = match name.split_once('/') {
            None => self.room_names.get(name).map(|room| Location::Room(*room)),
            Some((room, rack)) => {
                let room = if room.is_empty() { Some(None) } else { self.room_names.get(room).map(|room| Some(*room)) };
                room.and_then(|room| self.rack_names.get(&(room, rack.to_owned()))).map(|rack| Location::Rack(*rack))
            }
        };
        let machine = || by_name(&self.machine_names, self.of.len() as u64, name).map(Location::Machine);
        found.or_else(machine).ok_or_else(|| {
            let racks = (0..self.racks.len() as u32).map(|rack| self.name(Location::Rack(RackId(rack))));
            let all: Vec<String> = self.room_names.keys().cloned().chain(racks).collect();
            let hint = did_you_mean(name, all.iter().map(String::as_str));
            let expected = "expected ROOM, ROOM/RACK, or the name or number of a machine";
            format!("'{name}' is no room, no rack and no machine{hint}; {expected}")
        })
    }

    /// Returns the name of a location, as [`Locations::find`] reads it; the name of a machine is its number.
    pub fn name(&self, location: Location) -> String {
        match location {
            Location::Machine(machine) => machine.to_string(),
            Location::Rack(rack) => {
                let (node, room) = &self.racks[rack.0 as usize];
                format!("{}/{}", room.map_or("", |room| &self.rooms[room.0 as usize].name), node.name)
            }
            Location::Room(room) => self.rooms[room.0 as usize].name.clone(),
            Location::Cluster => "cluster".to_owned(),
        }
    }

    /// Returns the next existing level up; `None` above the cluster.
    pub fn up(&self, location: Location) -> Option<Location> {
        let room = |room: Option<RoomId>| Some(room.map_or(Location::Cluster, Location::Room));
        match location {
            Location::Machine(machine) => self.rack(machine).map(Location::Rack).or_else(|| room(self.room(machine))),
            Location::Rack(rack) => room(self.racks[rack.0 as usize].1),
            Location::Room(_) => Some(Location::Cluster),
            Location::Cluster => None,
        }
    }

    /// Returns the machines of a rack or a room, to limit a search to them.
    pub fn area(&self, location: Location) -> Option<&Area> {
        match location {
            Location::Rack(rack) => Some(&self.racks[rack.0 as usize].0.area),
            Location::Room(room) => Some(&self.rooms[room.0 as usize].area),
            Location::Machine(_) | Location::Cluster => None,
        }
    }

    /// Returns whether a machine is at a location.
    pub fn contains(&self, location: Location, machine: MachineId) -> bool {
        match location {
            Location::Machine(other) => other == machine,
            Location::Rack(rack) => self.rack(machine) == Some(rack),
            Location::Room(room) => self.room(machine) == Some(room),
            Location::Cluster => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_climbed_level_by_level() {
        let mut locations = Locations::default();
        for (rack, room) in [
            (Some("r1"), Some("hz")),
            (Some("r1"), Some("sh")),
            (Some("r1"), Some("hz")),
            (None, Some("sh")),
            (Some("r1"), None),
            (None, None),
        ] {
            locations.push(rack, room);
        }
        assert_eq!((locations.counts(), locations.machines()), ((3, 2), 6));
        let path = |machine| {
            let mut names = Vec::new();
            let mut at = Some(Location::Machine(MachineId(machine)));
            while let Some(location) = at {
                assert!(locations.contains(location, MachineId(machine)));
                names.push(locations.name(location));
                at = locations.up(location);
            }
            names.join(" ")
        };
        assert_eq!([0, 3, 4, 5].map(path), ["0 hz/r1 hz cluster", "3 sh cluster", "4 /r1 cluster", "5 cluster"]);
        let hz = locations.find("hz/r1").expect("a rack");
        let machines: Vec<u32> = locations.area(hz).expect("of machines").iter().map(|machine| machine.0).collect();
        assert_eq!(machines, [0, 2]);
        assert!(!locations.contains(hz, MachineId(1)));
        for name in ["hz", "sh", "sh/r1", "/r1"] {
            assert_eq!(locations.name(locations.find(name).expect("known")), name);
        }
        let message = locations.find("hz/r2").expect_err("no such rack");
        assert!(message.contains("'hz/r2' is no room, no rack and no machine (did you mean 'hz/r1'?)"), "{message}");
        assert!(locations.find("bj").is_err() && locations.find("bj/r1").is_err());
    }
}
